import { ThroughlineError } from '../errors.ts';
import { checkWellFormed } from './well-formed.ts';

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

/** A page of numbered things: those after a number, or the last ones before a number. Always in rising order. */
export type CheckedRange = { readonly limit: number } & ({ readonly after: number } | { readonly before: number });

/** The page that a caller asks for: from the start, unless `before` is given. `end`: later than every number. */
export function checkRange(range: { after?: unknown; before?: unknown; limit?: unknown }): CheckedRange {
  const { after, before } = range;
  const most = checkLimit(range.limit, 100);
  if (before === undefined) return { after: checkAfter(after), limit: most };
  if (after === undefined) return { before: checkBefore(before), limit: most };
  throw new ThroughlineError('invalid', 'A page is either "after" or "before" a number, not both.');
}

/** The number of the event or turn to go back from. */
export function checkBefore(value: unknown): number {
  if (value === 'end') return Number.MAX_SAFE_INTEGER;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value;
  throw new ThroughlineError('invalid', `"before" must be a whole number, 1 or more, or "end", not ${shown(value)}.`);
}

/** The number of a turn. */
export function checkTurnNumber(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value;
  throw new ThroughlineError('invalid', `The number of a turn must be a whole number, 1 or more, not ${shown(value)}.`);
}

const LAST_TURN = Number.MAX_SAFE_INTEGER;

/** The first and the last number of turns of a conversation; undefined: all turns. */
export function checkTurnSpan(span: { conversation: unknown; fromTurn: unknown; toTurn: unknown }) {
  const { conversation, fromTurn = 1, toTurn = LAST_TURN } = span;
  if (span.fromTurn === undefined && span.toTurn === undefined) return undefined;
  if (conversation === undefined) {
    throw new ThroughlineError('invalid', '"fromTurn" and "toTurn" need the conversation.');
  }
  return { from: checkTurnNumber(fromTurn), to: checkTurnNumber(toTurn) };
}

const LONGEST_WAIT_MS = 60_000;

/** How long to wait for something, in milliseconds. */
export function checkWait(value: unknown): number {
  if (value === undefined) return 0;
  if (typeof value === 'number' && value >= 0 && value <= LONGEST_WAIT_MS) return value;
  throw new ThroughlineError('invalid', `"waitMs" must be a number from 0 to ${LONGEST_WAIT_MS}, not ${shown(value)}.`);
}

/** What aborts something: an `AbortSignal`, also one of another realm. */
export function checkSignal(value: unknown): void {
  if (value === undefined) return;
  if (typeof value === 'object' && value !== null && 'aborted' in value && 'addEventListener' in value) return;
  throw new ThroughlineError('invalid', `"signal" must be an AbortSignal, not ${shown(value)}.`);
}

/** A password in the address of a server would be shown in error messages. */
export function checkNoPassword({ username, password }: Pick<URL, 'username' | 'password'>): void {
  if (username === '' && password === '') return;
  throw new ThroughlineError('invalid', 'The address of a server must not contain a user or a password.', {
    hint: 'Servers identify callers by a token or a key. Leave user and password out.',
  });
}

export function checkBoolean(value: unknown, name: string): asserts value is boolean {
  if (typeof value === 'boolean') return;
  throw new ThroughlineError('invalid', `${name} must be true or false, not ${shown(value)}.`);
}

const THIS_MACHINE = /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|\[::1\])$/;

/** A token is sent by https, or within this machine, unless the caller allows plain http. Throws `refused`. */
export function checkTokenAddress({ protocol, hostname, origin }: URL, plainHttp: boolean, howToAllow: string): void {
  if (protocol !== 'http:' || plainHttp || THIS_MACHINE.test(hostname)) return;
  throw new ThroughlineError('refused', `Everybody on the network could read the token on its way to ${origin}.`, {
    hint: `Use https for a server on another machine. On a network that only you can read, set ${howToAllow}.`,
  });
}

const LONGEST = 512;

/** An id or a name: not empty, not too long, and well-formed Unicode. */
export function checkText(value: unknown, what: string, longest = LONGEST): string {
  if (typeof value !== 'string' || value.trim() === '') {
    throw new ThroughlineError('invalid', `${withArticle(what)} must be a non-empty text, not ${shown(value)}.`);
  }
  if (value.length > longest)
    throw new ThroughlineError('invalid', `${withArticle(what)} can have at most ${longest} characters.`);
  checkWellFormed(value, `The ${what}`);
  return value;
}

/** Which directories to list: `path` is absolute or begins with "~". */
export function checkDirectories({ path, hidden }: { path?: unknown; hidden?: unknown }): {
  path?: string;
  hidden?: boolean;
} {
  if (hidden !== undefined) checkBoolean(hidden, '"hidden"');
  if (path !== undefined && !(typeof path === 'string' && /^(\/|~(\/|$))/.test(path) && !path.includes('\0'))) {
    throw new ThroughlineError('invalid', `"path" must be an absolute path or begin with "~/", not ${shown(path)}.`);
  }
  if (path !== undefined) checkWellFormed(path, 'The path');
  return given({ path, hidden });
}

/** The text that listed paths have to contain; empty: all are listed. */
export function checkMatch(value: unknown = ''): string {
  return value === '' ? '' : checkText(value, 'match');
}

/** "A key", "An agent id". */
export function withArticle(what: string): string {
  return /^[aeiou]/.test(what) ? `An ${what}` : `A ${what}`;
}

/** Options as a caller may write them: one that is undefined counts as left out. */
export type OrUndefined<T> = { readonly [K in keyof T]: T[K] | undefined };

/** Removes undefined fields, so that "not set" and "set to undefined" are the same. */
export function given<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const set: Partial<T> = {};
  for (const name of Object.keys(value) as (keyof T)[]) if (value[name] !== undefined) set[name] = value[name];
  return set as never;
}

/** The names of all options; does not compile while one is missing. */
export type OptionNames<T> = Readonly<Record<keyof T, true>>;

/** Throws `invalid` for an unknown option: a misspelt one would otherwise be ignored. Options are an object, or left out. */
export function checkOptions<T extends object>(
  options: T,
  known: Readonly<Record<keyof T, unknown>>,
  what: string,
): void {
  if (typeof options !== 'object' || options === null) {
    throw new ThroughlineError('invalid', `${what} takes its options as an object, not ${shown(options)}.`);
  }
  const unknown = Object.entries(options).find(([name, value]) => value !== undefined && !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  throw new ThroughlineError('invalid', `${what} has no option "${unknown[0]}".`, {
    hint: `Known options: ${Object.keys(known).join(', ')}.`,
  });
}

const LONGEST_SHOWN = 80;

/** Any value as text for a message: short, and never throws. */
export function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : (asJson(value) ?? `a ${typeof value}`);
  return text.length <= LONGEST_SHOWN ? text : `${text.slice(0, LONGEST_SHOWN)}…`;
}

/** Null: it has no JSON form (a bigint, a cycle, a function). */
function asJson(value: unknown): string | null {
  try {
    return JSON.stringify(value) ?? null;
  } catch {
    return null;
  }
}
