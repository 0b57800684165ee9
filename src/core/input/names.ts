import { ThroughlineError } from '../errors.ts';
import { a, checkText } from './arguments.ts';

const LONGEST_NAME = 512;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const CONTROL = /\p{Cc}/u;

/**
 * Checks a name that a caller chose. People read and type names: keys, titles, sandboxes, the ids of tracked agents, requests
 * and sessions. Throws `invalid`.
 */
export function checkName(name: unknown, what: string): string {
  const text = checkText(name, what);
  if (!CONTROL.test(text)) return text;
  throw new ThroughlineError('invalid', `${a(what)} must not contain control characters.`);
}

/** Whether a text looks like an id that we have made. Unless somebody says so, it is not meant as the key of something new. */
export function looksLikeId(text: string): boolean {
  return UUID_V7.test(text);
}

/**
 * Makes a title of any text: one line of well-formed Unicode, cut when it is too long. `checkName` accepts the result unless
 * it is empty.
 */
export function asTitle(text: string, longest = LONGEST_NAME): string {
  const line = text.toWellFormed().replaceAll(ESCAPES, '').replaceAll(SPACES, ' ').trim();
  if (line.length <= longest) return line;
  const start = line.slice(0, longest - 1).replace(HALF_AT_END, '');
  return `${start.trimEnd()}…`;
}

/** Whole terminal sequences: if only their first character were removed, the rest would be left as text. */
const ESCAPES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b\]|\u009d)[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?/gu;
const SPACES = /[\s\p{Cc}]+/gu;
const HALF_AT_END = /[\ud800-\udbff]$/;
