import { ThroughlineError } from './errors.ts';

/** The names of all options; does not compile while one is missing. */
export type OptionNames<T> = Readonly<Record<keyof T, true>>;

/** Throws `invalid` for an unknown option: a misspelt one would otherwise be ignored. */
export function checkOptions<T extends object>(options: T, known: OptionNames<T>, what: string): void {
  const unknown = Object.entries(options).find(([name, value]) => value !== undefined && !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  throw new ThroughlineError('invalid', `${what} has no option "${unknown[0]}".`, {
    hint: `Known options: ${Object.keys(known).join(', ')}.`,
  });
}
