import { a, checkText } from './arguments.ts';
import { ThroughlineError } from './errors.ts';

const LONGEST_NAME = 512;
const CONTROL = /\p{Cc}/u;

/**
 * Checks a name that a caller has chosen. Names are shown to people and typed by them: keys, titles, sandboxes, the ids of
 * tracked agents, requests and sessions. Throws `invalid`.
 */
export function checkName(name: unknown, what: string): string {
  const text = checkText(name, what);
  if (!CONTROL.test(text)) return text;
  throw new ThroughlineError('invalid', `${a(what)} must not have control characters.`);
}

/**
 * What nobody has chosen as a name, made into one: one line of whole characters, cut when it is too long. `checkName` takes
 * whatever comes of it, save when nothing does.
 */
export function asTitle(text: string, longest = LONGEST_NAME): string {
  const line = text.toWellFormed().replaceAll(SPACES, ' ').trim();
  if (line.length <= longest) return line;
  const start = line.slice(0, longest - 1).replace(HALF_AT_END, '');
  return `${start.trimEnd()}…`;
}

const SPACES = /[\s\p{Cc}]+/gu;
const HALF_AT_END = /[\ud800-\udbff]$/;
