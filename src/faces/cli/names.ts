import type { Argument, Command, Option } from 'commander';
import type { ErrorCode, Failure } from '../../core/errors.ts';
import type { Name, NameKind } from '../../core/input/names.ts';
import type { GlobalOptions, Parts } from './cli.ts';

/** Which arguments and options are names of something: for completion, and to correct a name that was typed wrong. */

/** What can stand in a place of the command line. */
export type Expected = NameKind | 'file' | 'directory' | null;

const ARGUMENTS: Readonly<Record<string, Expected>> = {
  key: 'conversation',
  conversation: 'conversation',
  turn: 'conversation',
  task: 'task',
  id: 'question',
  agent: 'installable',
  file: 'file',
};

/** By the name of its value, as the help shows it. */
const VALUES: Readonly<Record<string, Expected>> = {
  agent: 'agent',
  file: 'file',
  path: 'file',
  yaml: 'file',
  dir: 'directory',
};

export function expectedOf(place: Argument | Option): Expected {
  if ('flags' in place) {
    const [, value = ''] = /[<[]([\w-]+)/.exec(place.flags) ?? [];
    return VALUES[value] ?? null;
  }
  return ARGUMENTS[place.name()] ?? null;
}

/** The failure, with the name that was probably meant in its hint. `command`: the one that ran; null: none did. Never throws. */
export async function withSuggestion(
  failure: Failure,
  command: Command | null,
  parts: Parts,
  options: GlobalOptions,
): Promise<Failure> {
  for (const { word, kind } of command === null ? [] : namesGiven(command, failure)) {
    const known = await parts.names(options, kind).catch((): Name[] => []);
    const meant = nearest(
      word,
      known.map(({ name }) => name),
    );
    if (meant !== null) return { ...failure, hint: `Did you mean "${meant}"? ${failure.hint ?? ''}`.trimEnd() };
  }
  return failure;
}

/** What a failure with this code did not find. */
const KINDS_OF: Partial<Record<ErrorCode, readonly Expected[]>> = {
  not_found: ['conversation', 'task', 'question', 'installable'],
  agent_unavailable: ['agent'],
};

/** The names in the command line whose kind fits what was not found. */
function namesGiven(command: Command, { code }: Failure): { word: string; kind: NameKind }[] {
  const kinds = KINDS_OF[code] ?? [];
  const given: [Argument | Option, unknown][] = [
    ...command.registeredArguments.map((place, index): [Argument, unknown] => [place, command.processedArgs[index]]),
    ...command.options.map((place): [Option, unknown] => [place, command.getOptionValue(place.attributeName())]),
  ];
  return given.flatMap(([place, value]) => {
    const kind = expectedOf(place);
    const words = [value].flat().filter((word) => typeof word === 'string');
    return kind !== null && kinds.includes(kind) ? words.map((word) => ({ word, kind: kind as NameKind })) : [];
  });
}

/** The name that was probably meant: few letters differ, or only this one begins with `word`. Null: none, or `word` itself is known. */
export function nearest(word: string, known: readonly string[]): string | null {
  if (known.includes(word)) return null;
  const [typed, ...names] = [word, ...known].map((name) => name.toLowerCase());
  if (typed === undefined || typed === '') return null;
  const scored = names.map((name, index) => ({ name: known[index] as string, distance: distanceOf(typed, name) }));
  const close = scored.filter(({ name, distance }) => distance <= mostOf(typed, name));
  const [best] = close.toSorted((a, b) => a.distance - b.distance);
  if (best !== undefined) return best.name;
  const longer = known.filter((_, index) => names[index]?.startsWith(typed));
  return typed.length >= 3 && longer.length === 1 ? (longer[0] ?? null) : null;
}

/** At most three letters, and less than half of the word. */
function mostOf(typed: string, name: string): number {
  return Math.min(3, Math.ceil(Math.max(typed.length, name.length) / 2) - 1);
}

/** How many letters to insert, remove, replace or swap with their neighbour. Infinity: the lengths differ too much. */
function distanceOf(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 3) return Number.POSITIVE_INFINITY;
  let [before, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? Infinity) + 1 : Infinity;
      row[j] = Math.min(replaced, swapped, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
    }
    [before, last] = [last, row];
  }
  return last[b.length] ?? Number.POSITIVE_INFINITY;
}
