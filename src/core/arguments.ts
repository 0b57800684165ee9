import { ThroughlineError } from './errors.ts';
import { shown } from './shown.ts';

/** Checks of arguments other than prompts and settings. Each throws `invalid` and says what is wrong. */

const MOST = 10_000;

/** How many of something to return. */
export function checkLimit(value: unknown, otherwise: number): number {
  if (value === undefined) return otherwise;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= MOST) return value;
  throw new ThroughlineError('invalid', `A limit must be a whole number from 1 to ${MOST}, not ${shown(value)}.`);
}

/** The number of the event or turn to continue after. */
export function checkAfter(value: unknown): number {
  if (value === undefined) return 0;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new ThroughlineError('invalid', `"after" must be a whole number, 0 or more, not ${shown(value)}.`);
}

const LONGEST = 512;

/** An id or a name: not empty, not too long, and well-formed Unicode. */
export function checkText(value: unknown, what: string): string {
  if (typeof value !== 'string' || value.trim() === '') {
    throw new ThroughlineError('invalid', `${a(what)} must be a non-empty text, not ${shown(value)}.`);
  }
  if (value.length > LONGEST)
    throw new ThroughlineError('invalid', `${a(what)} can have at most ${LONGEST} characters.`);
  if (!value.isWellFormed()) throw new ThroughlineError('invalid', `The ${what} contains an unpaired surrogate.`);
  return value;
}

/** "A key", "An agent id". */
export function a(what: string): string {
  return /^[aeiou]/.test(what) ? `An ${what}` : `A ${what}`;
}
