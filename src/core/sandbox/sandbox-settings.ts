import { ThroughlineError } from '../errors.ts';
import { about, flag, list, type Output, object, oneOf, required, text, value, whole } from '../input/schema.ts';
import { parseAllowed } from './allowlist.ts';

/** The settings of sandboxes. */

const SANDBOX_KINDS = ['directory', 'bubblewrap'] as const;
const NETWORKS = ['none', 'model', 'all'] as const;

const DESTINATION = value<string>(
  (one) => typeof one === 'string' && parseAllowed(one) !== null,
  '"HOST", "HOST:PORT" or "*.DOMAIN:PORT"; without a port it is 443',
  { type: 'string', pattern: '^(\\*\\.)?(\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?$' },
);
const HTTP_URL = value<string>(
  (one) => typeof one === 'string' && /^https?:\/\//.test(one) && URL.canParse(one),
  'an address that begins with http:// or https://',
  { type: 'string', pattern: '^https?://' },
);
const VARIABLE = value<string>(
  (one) => typeof one === 'string' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(one),
  'the name of an environment variable',
  { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]*$' },
);
const HEADER = value<string>(
  (one) => typeof one === 'string' && /^[a-z][a-z0-9-]*$/.test(one),
  'the name of a header, in lower case',
  { type: 'string', pattern: '^[a-z][a-z0-9-]*$' },
);

const KEY = object({
  variable: about('The variable of the agent that has the key. Default ANTHROPIC_API_KEY.', VARIABLE),
  header: about(
    'The header that the key is sent in; "authorization" sends it as a bearer token. Default x-api-key.',
    HEADER,
  ),
  urlVariable: about(
    'The variable of the agent that has the address of its model. Default ANTHROPIC_BASE_URL.',
    VARIABLE,
  ),
  url: about('The address of the model, when that variable is not set. Default https://api.anthropic.com.', HTTP_URL),
});
const LIMITS = object({
  processes: about('How many processes and threads an agent may have, with all that it starts.', whole({ least: 64 })),
  memoryMb: about('How many MiB of memory they may take together.', whole({ least: 64 })),
  openFiles: about('How many files a process may have open.', whole({ least: 64 })),
});
const BIND = object({
  path: required(
    about("A file or folder, seen at the same path. Relative paths start at this file's directory.", text),
  ),
  write: about('Whether agents may change it. Default: no.', flag),
});

export const SANDBOX = object({
  root: about('Where sandboxes are made. Left out: sandboxes in the data home.', text),
  kind: about(
    'directory: separate folders, not isolated. bubblewrap: isolated, on Linux. Default directory.',
    oneOf(SANDBOX_KINDS),
  ),
  network: about(
    'For bubblewrap. none; model: only the destinations of allow, and the model of key; all: everything. Default model.',
    oneOf(NETWORKS),
  ),
  allow: about('Where agents may connect to with the network "model".', list(DESTINATION)),
  key: about('The key of the model stays outside of the sandbox: with the network "model", the proxy adds it.', KEY),
  limits: about('For bubblewrap. What cannot be enforced on this machine is refused. Default: no limits.', LIMITS),
  binds: about('For bubblewrap: what else agents see of this machine.', list(BIND)),
});

type SandboxSettings = Output<typeof SANDBOX>;

/** Complete, with absolute paths. */
export interface BubblewrapSettings {
  readonly network: (typeof NETWORKS)[number];
  readonly allow: readonly string[];
  readonly key: Required<Output<typeof KEY>> | null;
  readonly limits: Output<typeof LIMITS>;
  readonly binds: readonly Output<typeof BIND>[];
}

const ONLY_ISOLATED = ['network', 'allow', 'key', 'limits', 'binds'] as const;

/** Null: no setting contradicts another. */
function contradiction(settings: SandboxSettings): string | null {
  const { kind = 'directory', network = 'model', allow = [], key } = settings;
  const [isolated] = ONLY_ISOLATED.filter((name) => settings[name] !== undefined);
  if (kind === 'directory') {
    return isolated === undefined ? null : `"sandbox.${isolated}" needs "sandbox.kind": "bubblewrap"`;
  }
  const reaches = key !== undefined ? 'key' : allow.length > 0 ? 'allow' : null;
  if (network !== 'model') return reaches === null ? null : `"sandbox.${reaches}" needs "sandbox.network": "model"`;
  return reaches === null ? 'the network "model" of "sandbox" reaches nothing without "allow" or "key"' : null;
}

const HINT =
  'Write "allow": ["api.anthropic.com"], or "key": {} to keep the key of Claude outside, or set "network" to "none" or "all". See docs/sandboxes.md.';

/** Null: the sandboxes are not isolated. Throws `invalid` when one setting contradicts another. */
export function bubblewrapSettings(
  settings: SandboxSettings,
  absolute: (path: string) => string,
): BubblewrapSettings | null {
  const { kind = 'directory', network = 'model', allow = [], key, limits = {}, binds = [] } = settings;
  const wrong = contradiction(settings);
  if (wrong !== null) throw new ThroughlineError('invalid', `Settings: ${wrong}.`, { hint: HINT });
  if (kind === 'directory') return null;
  const claude = { variable: 'ANTHROPIC_API_KEY', header: 'x-api-key', urlVariable: 'ANTHROPIC_BASE_URL' };
  return {
    network,
    allow,
    key: key === undefined ? null : { ...claude, url: 'https://api.anthropic.com', ...key },
    limits,
    binds: binds.map((bind) => ({ ...bind, path: absolute(bind.path) })),
  };
}
