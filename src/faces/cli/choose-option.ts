import { ThroughlineError } from '../../core/errors.ts';
import { denyOption, type PermissionOption } from '../../core/permission.ts';

/** The option that an answer means: its id, its number, or by kind `allow` and `deny`. An id always wins. */
export function chooseOption(options: readonly PermissionOption[], answer: string): PermissionOption | null {
  const word = answer.trim();
  const byId = options.find((option) => option.optionId === word);
  if (byId !== undefined) return byId;
  const lower = word.toLowerCase();
  if (['allow', 'yes', 'y'].includes(lower)) return allowOption(options);
  if (['deny', 'no', 'n'].includes(lower)) return denyOption(options);
  return /^\d+$/.test(word) ? (options[Number(word) - 1] ?? null) : null;
}

/** Once rather than always: nobody grants more than was asked with a shorthand. */
function allowOption(options: readonly PermissionOption[]): PermissionOption | null {
  return options.find((o) => o.kind === 'allow_once') ?? options.find((o) => o.kind === 'allow_always') ?? null;
}

export function optionList(options: readonly PermissionOption[]): string {
  return options.map(({ optionId, name }) => `${optionId} (${name})`).join(', ');
}

export function noSuchOption(options: readonly PermissionOption[], answer: string): ThroughlineError {
  return new ThroughlineError('invalid', `"${answer}" is not an answer to this question.`, {
    hint: `Known are ${optionList(options)}, and allow or deny.`,
  });
}
