import { noSuchAgent, ThroughlineError } from '../errors.ts';
import { checkText, withArticle } from './arguments.ts';
import { findInvisible, withoutInvisible } from './visible.ts';

const LONGEST_NAME = 512;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const CONTROL = /\p{Cc}/u;

/**
 * Checks a name that a caller chose. People read and type names: titles, the ids of tracked agents, requests and sessions. Throws
 * `invalid`.
 */
export function checkName(name: unknown, what: string): string {
  const text = checkText(name, what);
  if (!CONTROL.test(text)) return text;
  throw new ThroughlineError('invalid', `${withArticle(what)} must not contain control characters.`);
}

/**
 * Checks a name that identifies something: a key, a sandbox, an agent, an owner. No two of them may look the same, and each must fit into
 * the path of a URL: "." and ".." are removed from one, even percent-encoded. Throws `invalid`.
 */
export function checkKey(name: unknown, what: string): string {
  const text = checkName(name, what);
  const refused = (message: string, hint: string) =>
    new ThroughlineError('invalid', `${withArticle(what)} must not ${message}.`, { hint });
  if (text === '.' || text === '..') throw refused(`be "${text}"`, 'In the path of a URL it means another place.');
  const unseen = findInvisible(text);
  if (unseen !== null) {
    const code = `U+${unseen.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`;
    throw refused(`contain ${code}`, 'The character cannot be seen, or changes how others are shown. Leave it out.');
  }
  if (text !== text.normalize('NFC'))
    throw refused('be in decomposed form', "Send it in Unicode's form NFC: another form looks the same.");
  return text;
}

/** Throws `agent_unavailable` when a caller names an agent that does not exist. */
export function checkAgent({ agents }: { readonly agents: ReadonlyMap<string, unknown> }, name?: string): void {
  if (name !== undefined && !agents.has(name)) throw noSuchAgent(name, agents.keys());
}

/** It contains the owner, and the name of what acts for them. */
const LONGEST_BY = 2 * LONGEST_NAME;

/** Who acts: the owner, and the name that is recorded. */
export interface Actor {
  readonly owner: string;
  readonly by: string;
}

/**
 * `by` is given when the owner comes from a stored key or task: older versions accepted names that `checkKey` refuses, and their data must
 * stay reachable. Throws `invalid`, also for an unpaired surrogate: a database stores all of those as the same character.
 */
export function actor(owner: string, by?: string): Actor {
  if (by === undefined) return { owner: checkKey(owner, 'owner'), by: owner };
  return { owner: checkText(owner, 'owner'), by: checkText(by, 'name of who acts', LONGEST_BY) };
}

/** Whether a text looks like one of our ids. Then the caller probably means something that exists, not the key of something new. */
export function looksLikeId(text: string): boolean {
  return UUID_V7.test(text);
}

/**
 * Makes a title of any text: one line of well-formed Unicode, cut when it is too long. `checkName` accepts the result unless
 * it is empty.
 */
export function asTitle(text: string, longest = LONGEST_NAME): string {
  const begin = text.slice(0, MOST_READ).replace(HALF_AT_END, '');
  const line = withoutInvisible(begin.toWellFormed().replaceAll(ESCAPES, '').replaceAll(SPACES, ' ')).trim();
  if (line.length <= longest) return line;
  const start = line.slice(0, longest - 1).replace(HALF_AT_END, '');
  return `${start.trimEnd()}…`;
}

/** How much of a text is read for a title: a text may have megabytes. */
const MOST_READ = 20_000;
/** Whole terminal sequences: if only their first character were removed, the rest would be left as text. */
const ESCAPES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b\]|\u009d)[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?/gu;
const SPACES = /[\s\p{Cc}]+/gu;
const HALF_AT_END = /[\ud800-\udbff]$/;

/** What a name on the command line stands for. It can be completed, and corrected. */
export type NameKind = 'conversation' | 'agent' | 'task' | 'question' | 'installable';

export interface Name {
  readonly name: string;
  /** What it is, for people; any length. */
  readonly about: string;
}
