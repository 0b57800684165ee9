import { ThroughlineError } from './errors.ts';
import { shown } from './shown.ts';

/** Checks of what callers give, beside prompts and settings. Each throws `invalid` and names what is wrong. */

const MOST = 10_000;

/** How many of something to return. */
export function checkLimit(value: unknown, otherwise: number): number {
  if (value === undefined) return otherwise;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= MOST) return value;
  throw new ThroughlineError('invalid', `A limit is a whole number from 1 to ${MOST}, not ${shown(value)}.`);
}

/** The number of an event or a turn after which to go on. */
export function checkAfter(value: unknown): number {
  if (value === undefined) return 0;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new ThroughlineError('invalid', `"after" is a whole number from 0 on, not ${shown(value)}.`);
}

const LONGEST = 512;

/** An id or a name that a caller has chosen or was given: some text, not too long, of whole characters. */
export function checkText(value: unknown, what: string): string {
  if (typeof value !== 'string' || value.trim() === '') {
    throw new ThroughlineError('invalid', `${a(what)} is a non-empty text, not ${shown(value)}.`);
  }
  if (value.length > LONGEST) throw new ThroughlineError('invalid', `${a(what)} has at most ${LONGEST} characters.`);
  if (!value.isWellFormed()) throw new ThroughlineError('invalid', `The ${what} has half a character in it.`);
  return value;
}

/** "A key", "An agent id". */
export function a(what: string): string {
  return /^[aeiou]/.test(what) ? `An ${what}` : `A ${what}`;
}
