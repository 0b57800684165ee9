import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { AgentCredentials } from './agents/shared/credentials.ts';
import { ThroughlineError } from './core/errors.ts';
import { shown } from './core/input/arguments.ts';
import type { AgentSettings } from './core/input/settings.ts';
import {
  type CredentialSource,
  type Credentials,
  type CredentialsFor,
  fileOfOwner,
  isPerOwner,
  NO_PLACE,
  placeOf,
} from './core/sandbox/credentials.ts';

/*
 * Reads the credentials of agents: from variables and files that the settings name, and from a function of the program that embeds
 * Throughline. They are read whenever a session is opened, and are not stored.
 */

type Sources = NonNullable<AgentSettings['credentials']>;

/** Null: the agent has none. */
export function credentialsOf(
  agent: string,
  sources: Sources | undefined,
  { base, given }: { readonly base: string; readonly given: CredentialsFor | undefined },
): AgentCredentials | null {
  if (sources === undefined && given === undefined) return null;
  const set = Object.entries(sources ?? {});
  const perOwner = given !== undefined || set.some(([, source]) => isPerOwner(source));
  return {
    perOwner,
    async of(owner) {
      const common = set.filter(([, source]) => owner !== null || !isPerOwner(source));
      const read = common.map(([name, source]) => [name, sourceValue(source, { agent, owner, base, name })] as const);
      const own = owner === null || given === undefined ? {} : await asked(given, { owner, agent });
      return { ...Object.fromEntries(read), ...own };
    },
  };
}

/** With absolute paths. */
export function absoluteSources(sources: Sources, base: string): Sources {
  const absolute = ({ file, ...env }: CredentialSource) => (file === undefined ? env : { file: resolve(base, file) });
  return Object.fromEntries(Object.entries(sources).map(([name, source]) => [name, absolute(source)]));
}

/** Variables that say how the network is reached. They are no credentials. */
const CONNECTION = /^(?:(?:HTTPS?|NO|ALL)_PROXY|NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR))$/i;

/** The part of our environment that an agent may have. An agent with credentials of its own must not find ours. */
export function environmentFor(credentials: AgentCredentials | null): NodeJS.ProcessEnv {
  if (credentials === null) return process.env;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => CONNECTION.test(name)));
}

interface Wanted {
  readonly agent: string;
  readonly owner: string | null;
  readonly base: string;
  readonly name: string;
}

const MOST_BYTES = 65_536;

function sourceValue({ env, file }: CredentialSource, wanted: Wanted): string {
  const { base, owner, name } = wanted;
  if (env !== undefined) return checkedValue(process.env[env], `the variable ${env} is not set`, wanted);
  const path = resolve(base, fileOfOwner(file ?? '', owner ?? ''));
  const text = textOf(path, wanted);
  const place = placeOf(name);
  // Editors and "echo" end a file with a line break, which is not a part of a key.
  const whole = place && 'variable' in place ? text.replace(/[\r\n]+$/, '') : text;
  return checkedValue(whole, `${path} is empty`, wanted);
}

function textOf(path: string, wanted: Wanted): string {
  try {
    const bytes = readFileSync(path);
    if (bytes.length > MOST_BYTES) throw missing(`${path} has more than ${MOST_BYTES} bytes`, wanted);
    return bytes.toString('utf8');
  } catch (error) {
    if (error instanceof ThroughlineError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw missing(code === 'ENOENT' ? `${path} does not exist` : `${path} cannot be read (${code})`, wanted);
  }
}

function checkedValue(value: string | undefined, otherwise: string, wanted: Wanted): string {
  if (value === undefined || value === '') throw missing(otherwise, wanted);
  // Node would show the value in its own error.
  if (value.includes('\0')) throw missing(`the value of ${wanted.name} has a zero byte`, wanted);
  return value;
}

function missing(why: string, { agent, owner }: Pick<Wanted, 'agent' | 'owner'>): ThroughlineError {
  const whose = owner === null ? '' : ` for the owner ${shown(owner)}`;
  return new ThroughlineError('agent_unavailable', `The agent ${agent} has no credentials${whose}: ${why}.`, {
    hint: 'Nothing was started. Credentials of others are never used instead. See "credentials" in docs/sandboxes.md.',
  });
}

async function asked(given: CredentialsFor, request: { owner: string; agent: string }): Promise<Credentials> {
  const answered = await Promise.resolve(request)
    .then(given)
    .catch((cause: unknown) => {
      throw missing(`credentials() failed: ${cause instanceof Error ? cause.message : String(cause)}`, request);
    });
  if (answered === null) throw missing('credentials() returned null', request);
  if (typeof answered !== 'object' || Array.isArray(answered))
    throw missing('credentials() did not return an object', request);
  for (const [name, value] of Object.entries(answered)) {
    if (placeOf(name) === null) throw missing(`credentials() returned ${shown(name)}, which is ${NO_PLACE}`, request);
    if (typeof value !== 'string') throw missing(`credentials() did not return a text for ${name}`, request);
    checkedValue(value, `credentials() returned an empty text for ${name}`, { ...request, base: '', name });
  }
  return answered;
}
