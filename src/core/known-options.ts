import { ThroughlineError } from './errors.ts';

/** Every name that these options may have; it does not compile while one is missing. */
export type OptionNames<T> = Readonly<Record<keyof T, true>>;

/** Throws `invalid` for an option that there is not: what was misspelt would else be left out without a word. */
export function checkOptions<T extends object>(options: T, known: OptionNames<T>, what: string): void {
  const unknown = Object.entries(options).find(([name, value]) => value !== undefined && !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  throw new ThroughlineError('invalid', `${what} has no option "${unknown[0]}".`, {
    hint: `Known are ${Object.keys(known).join(', ')}.`,
  });
}
