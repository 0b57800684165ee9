import { isatty } from 'node:tty';
import { ThroughlineError } from '../../../../core/errors.ts';
import { warningOf } from '../../../../core/input/warning.ts';
import { allowOption, denyOption, meaningOf, type PermissionOption } from '../../../../core/turn/permission.ts';
import type { PermissionMode } from '../../../../core/turn/turn.ts';
import type { Output } from '../../output.ts';
import { codeText, oneLine } from '../../terminal-text.ts';

/** How people answer an agent's questions. */

/** The option that an answer means: its id, its number, or by kind `allow` and `deny`. An id always wins. */
export function chooseOption(options: readonly PermissionOption[], answer: string): PermissionOption | null {
  const word = answer.trim();
  const byId = options.find((option) => option.optionId === word);
  if (byId !== undefined) return byId;
  const meant = meaningOf(word);
  if (meant !== null) return meant === 'allow' ? allowOption(options) : denyOption(options);
  return optionAt(options, word);
}

function optionAt(options: readonly PermissionOption[], number: string): PermissionOption | null {
  return /^\d+$/.test(number) ? (options[Number(number) - 1] ?? null) : null;
}

export function optionList(options: readonly PermissionOption[]): string {
  return options.map(({ optionId, name }) => `${optionId} (${name})`).join(', ');
}

/** A question of several lines. Those after the first have a mark: they must not look like choices, or like another question. */
export function questionText(title: string): string {
  return codeText(title.trimEnd()).replaceAll('\n', '\n  | ');
}

export function noSuchOption(options: readonly PermissionOption[], answer: string): ThroughlineError {
  return new ThroughlineError('invalid', `"${answer}" is not an answer to this question.`, {
    hint: `Possible answers: ${optionList(options)}; or allow, deny.`,
  });
}

/** Whether there is a person to ask. With `--json` a program reads. */
export function atTerminal(output: Output): boolean {
  return isatty(0) && !output.json;
}

/** What happens to a question when `--permissions` is not given. */
export function defaultPermissions(output: Output): PermissionMode {
  return atTerminal(output) ? 'ask' : 'deny';
}

export interface Question {
  readonly title: string;
  readonly options: readonly PermissionOption[];
}

/**
 * Asks the person at the terminal until the answer is valid. Resolves with null when the signal aborts (somebody else
 * answered, or the question was withdrawn), and with a denial when the input ends.
 */
export async function askPermission(
  { title, options }: Question,
  { output, input, signal }: { output: Output; input: NodeJS.ReadableStream; signal: AbortSignal },
): Promise<string | null> {
  const { createInterface } = await import('node:readline');
  // Not as a terminal: then Ctrl-C stays a signal, and the usual handlers get it.
  const lines = createInterface({ input, terminal: false });
  const stop = () => lines.close();
  signal.addEventListener('abort', stop, { once: true });
  try {
    output.ask(`The agent asks: ${questionText(title)}`);
    const warning = warningOf([title]);
    if (warning !== null) output.ask(`  ! ${warning}`);
    const choices = options.map(({ name }, index) => `${index + 1} ${oneLine(name, 'code')}`).join('   ');
    output.ask(`  ${choices}   (or allow, deny)`);
    if (signal.aborted) return null;
    for await (const line of lines) {
      if (signal.aborted) return null;
      // Options are shown by their number, not by their id.
      const chosen = optionAt(options, line.trim()) ?? chooseOption(options, line);
      if (chosen !== null) return chosen.optionId;
      output.ask(`  "${line}" is not one of the answers.`);
    }
    return signal.aborted ? null : (denyOption(options)?.optionId ?? null);
  } finally {
    signal.removeEventListener('abort', stop);
    lines.close();
  }
}
