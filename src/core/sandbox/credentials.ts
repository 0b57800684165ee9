import { about, byName, checked, environmentVariable, object, text } from '../input/schema.ts';

/*
 * What an agent logs in with. It is passed to its program when a session is opened, and we do not store it. The name says how the agent
 * gets it: "NAME" is an environment variable, "~/PATH" a file in its home.
 */

/**
 * Values by their names: a variable, or a file in the home of the agent.
 *
 * @example
 * import type { Credentials } from 'throughline';
 *
 * const anns: Credentials = { ANTHROPIC_API_KEY: 'sk-…', '~/.codex/auth.json': '{…}' };
 */
export type Credentials = Readonly<Record<string, string>>;

/**
 * Who needs them: an owner, and an agent by its name in the settings.
 *
 * @example
 * import type { CredentialsRequest } from 'throughline';
 *
 * const nameIn = ({ owner, agent }: CredentialsRequest) => `${agent} of ${owner}`;
 */
export interface CredentialsRequest {
  readonly owner: string;
  readonly agent: string;
}

/**
 * Called whenever a session is opened. Null: this owner has none, and nothing is started. An empty object: none are needed.
 *
 * @example
 * import { type CredentialsFor, open } from 'throughline';
 *
 * const credentials: CredentialsFor = ({ owner }) => (owner === 'ann' ? { ANTHROPIC_API_KEY: 'sk-…' } : null);
 * await using tl = await open({ credentials });
 */
export type CredentialsFor = (request: CredentialsRequest) => Credentials | null | Promise<Credentials | null>;

/** Where the settings say that a value comes from. */
export type CredentialSource = { readonly env?: string; readonly file?: string };

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const HOME = '~/';
const OWNER = '{owner}';

const isVariable = (one: unknown) => typeof one === 'string' && VARIABLE.test(one);

const SOURCE = checked(
  object({
    env: about("The variable of Throughline's own environment that has the value.", environmentVariable),
    file: about(
      "The file that has the value. {owner} in it is the name of the owner. Relative paths start at this file's directory.",
      text,
    ),
  }),
  ({ env, file }) =>
    (env === undefined) === (file === undefined) ? { must: '{ "env": NAME } or { "file": PATH }' } : null,
);

const BY_NAME = byName(SOURCE);

export const CREDENTIALS = about(
  'What the agent logs in with, by the name of its environment variable, or by "~/PATH": a file in its home, for sandboxes with a home of their own.',
  checked({ ...BY_NAME, json: { ...BY_NAME.json, propertyNames: { pattern: `${VARIABLE.source}|^~/.` } } }, (all) => {
    const wrong = Object.keys(all).find((name) => placeOf(name) === null);
    return wrong === undefined ? null : { says: `"credentials" has ${JSON.stringify(wrong)}, which is ${NO_PLACE}` };
  }),
);

/** Completes a sentence that ends with "is". */
export const NO_PLACE = 'neither the name of a variable nor "~/PATH"';

/** How the agent gets a value. Null: the name is neither. */
export function placeOf(name: string): { readonly variable: string } | { readonly file: string } | null {
  if (isVariable(name)) return { variable: name };
  if (!name.startsWith(HOME)) return null;
  const file = name.slice(HOME.length);
  const isPath = file.split('/').every((part) => part !== '' && part !== '.' && part !== '..' && !part.includes('\0'));
  return isPath ? { file } : null;
}

/** Whether every owner has another file. */
export function isPerOwner({ file = '' }: CredentialSource): boolean {
  return file.includes(OWNER);
}

/** The file of an owner. The name is encoded as in a URL, so it is always one part of the path. */
export function fileOfOwner(path: string, owner: string): string {
  const part = encodeURIComponent(owner.toWellFormed()).replace(/^\.+/, (dots) => '%2E'.repeat(dots.length));
  return path.replaceAll(OWNER, () => part);
}

/** A shorter value may be an ordinary word. */
const SHORTEST_SECRET = 8;

/** Longest first: a value may be the beginning of another. */
function secretsOf(credentials: Credentials): (readonly [name: string, secret: string])[] {
  return Object.entries(credentials)
    .filter(([name, secret]) => isVariable(name) && secret.length >= SHORTEST_SECRET)
    .toSorted(([, one], [, other]) => other.length - one.length);
}

/** How many characters at the end of a text may be the beginning of a secret that continues in the next text. */
export function unfinishedIn(credentials: Credentials): (text: string) => number {
  const secrets = secretsOf(credentials).map(([, secret]) => secret);
  const begun = (text: string, secret: string) => {
    let length = Math.min(text.length, secret.length - 1);
    while (length > 0 && !text.endsWith(secret.slice(0, length))) length -= 1;
    return length;
  };
  return (text) => {
    const from = text.length - Math.max(0, ...secrets.map((secret) => begun(text, secret)));
    // A whole secret that continues after that point is not cut.
    const isCut = secrets.some((secret) => {
      const at = text.lastIndexOf(secret);
      return at !== -1 && at < from && at + secret.length > from;
    });
    return isCut ? 0 : text.length - from;
  };
}

/** Replaces secrets wherever they occur in the texts of a value. Returns the same value if there are none. */
export function hides(credentials: Credentials): <T>(value: T) => T {
  const secrets = secretsOf(credentials);
  const inText = (said: string) =>
    secrets.reduce(
      (all, [name, secret]) => (all.includes(secret) ? all.replaceAll(secret, () => `[${name}]`) : all),
      said,
    );
  const hide = (one: unknown): unknown => {
    if (typeof one === 'string') return inText(one);
    if (Array.isArray(one)) {
      const hidden = one.map(hide);
      return hidden.every((each, index) => each === one[index]) ? one : hidden;
    }
    if (one === null || typeof one !== 'object' || ArrayBuffer.isView(one)) return one;
    const before = Object.entries(one);
    const after = before.map(([name, each]) => [name, hide(each)] as const);
    return after.every(([, each], index) => each === before[index]?.[1]) ? one : Object.fromEntries(after);
  };
  return <T>(one: T) => (secrets.length === 0 ? one : (hide(one) as T));
}
