import { ThroughlineError } from '../errors.ts';
import {
  about,
  command,
  environmentVariable,
  flag,
  list,
  matching,
  type Output,
  object,
  oneOf,
  required,
  text,
  value,
  whole,
} from '../input/schema.ts';
import { parseAllowed } from './allowlist.ts';
import { isVendor, MACHINE, VENDOR_KINDS } from './vendor-settings.ts';

/** The settings of sandboxes. */

const SANDBOX_KINDS = ['directory', 'bubblewrap', 'container', 'ssh', ...VENDOR_KINDS] as const;
const ENGINES = ['podman', 'docker'] as const;
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
const HEADER = matching(/^[a-z][a-z0-9-]*$/, 'the name of a header, in lower case');
// It becomes an argument of a command, and must not be read as an option.
const IMAGE = matching(/^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}$/, 'the name of an image, such as "localhost/agent:1"');
const HOST_KEY = matching(/^[a-z0-9@.-]+ [A-Za-z0-9+/]+=*( .*)?$/, 'a public key, as "ssh-ed25519 AAAA…"');

const KEY = object({
  variable: about('The variable of the agent that has the key. Default ANTHROPIC_API_KEY.', environmentVariable),
  header: about(
    'The header that the key is sent in; "authorization" sends it as a bearer token. Default x-api-key.',
    HEADER,
  ),
  urlVariable: about(
    'The variable of the agent that has the address of its model. Default ANTHROPIC_BASE_URL.',
    environmentVariable,
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

const STEP = object({
  name: required(about('What it is called in lists and errors.', text)),
  command: required(
    about('The program and its arguments, run inside of the sandbox, in its working directory.', command),
  ),
  timeoutSeconds: about('How long it may take. Default 600.', whole({ least: 1, most: 86_400 })),
});
const LINK = object({
  name: required(
    about(
      'The name of the link in the working directory.',
      value<string>(
        (one) => typeof one === 'string' && /^[^/\0]{1,255}$/.test(one) && one !== '.' && one !== '..',
        'a name without "/"',
        { type: 'string', pattern: '^[^/]{1,255}$' },
      ),
    ),
  ),
  path: required(about("Where it leads. Relative paths start at this file's directory.", text)),
});

export const SANDBOX = object({
  root: about(
    'Where sandboxes are made. Left out: sandboxes in the data home; for ssh, .throughline/sandboxes in the home of the user there.',
    text,
  ),
  place: about(
    'A name for directories that several servers of one store reach, all at the same paths. Servers with the same name run each other’s conversations. Needs root. Left out: only this data home runs the conversations that it began.',
    matching(/^[A-Za-z0-9._-]{1,100}$/, 'a name of letters, digits, ".", "_" and "-"'),
  ),
  moveHere: about(
    'Whether this data home continues conversations of places in which no process runs any more: in an empty sandbox, without the files of their work. Default: no, unless somebody asks for it ("throughline move").',
    flag,
  ),
  worktree: about(
    'Whether a conversation whose directory is in a git repository works in a worktree of it, on a branch of its own, unless it says otherwise. Default: no.',
    flag,
  ),
  directories: about(
    "Below which directories a person may choose on the page where a conversation works. Relative paths start at this file's directory. Default: the home of whoever runs the server.",
    list(text),
  ),
  kind: about(
    'directory: separate folders, not isolated. bubblewrap: isolated, on Linux. container: isolated, by podman or docker. ssh: on another machine, as its user. vercel, e2b: in rented machines. Default directory.',
    oneOf(SANDBOX_KINDS),
  ),
  network: about(
    'For isolated ones. none; model: only the destinations of allow, and the model of key; all: everything. Default model.',
    oneOf(NETWORKS),
  ),
  allow: about('Where agents may connect to with the network "model".', list(DESTINATION)),
  key: about('The key of the model stays outside of the sandbox: with the network "model", the proxy adds it.', KEY),
  limits: about('For isolated ones. What cannot be enforced on this machine is refused. Default: no limits.', LIMITS),
  binds: about('For isolated ones: what else agents see of this machine.', list(BIND)),
  engine: about('For container: the program that runs it. Default podman.', oneOf(ENGINES)),
  image: about('For container: the image that agents run in. It is never pulled.', IMAGE),
  rootfs: about(
    "For container: a folder to run in, instead of an image. Relative paths start at this file's directory.",
    text,
  ),
  host: about('For ssh: the name or address of the machine.', text),
  port: about('For ssh. Default 22.', whole({ least: 1, most: 65_535 })),
  user: about('For ssh: the user to log in as.', text),
  hostKey: about('For ssh: the public key of the machine, "ssh-ed25519 AAAA…". Left out: knownHosts has it.', HOST_KEY),
  knownHosts: about('For ssh: a file with the keys of machines. Default ~/.ssh/known_hosts.', text),
  identityFile: about('For ssh: the file of the private key to log in with. Left out: the ssh agent has it.', text),
  machine: about('For vercel and e2b.', MACHINE),
  setup: about(
    'Steps that are run once in each sandbox, and again when they change. A failed one is tried again.',
    list(STEP),
  ),
  links: about('Links to shared folders that are made in the working directory of each sandbox.', list(LINK)),
  diskMb: about(
    'How many MiB a sandbox may have: its working directory and the files of its agents. A turn in a larger one is refused. Default: no limit.',
    whole({ least: 1 }),
  ),
  restAfterSeconds: about(
    'A server puts a sandbox to rest when nobody has used it for so long: its sessions end, and a rented machine stops. Default: never.',
    whole({ least: 1 }),
  ),
  removeAfterSeconds: about(
    'A server removes a sandbox when nobody has used it for so long, unless it contains unsaved work. Default: never.',
    whole({ least: 1 }),
  ),
});

type SandboxSettings = Output<typeof SANDBOX>;

/** A step of the set-up. */
export interface SetupStep {
  readonly name: string;
  readonly command: readonly string[];
  readonly timeoutMs: number;
}

/** The settings for sandboxes of any kind. */
export interface PlaceSettings {
  /** Links first. */
  readonly setup: readonly SetupStep[];
  /** Null: no limit. */
  readonly diskMb: number | null;
  /** How long a sandbox is unused before it is put to rest, and before it is removed. Null: never. */
  readonly restAfterMs: number | null;
  readonly removeAfterMs: number | null;
  /** Whether conversations of places without a process are continued here, without their files. */
  readonly moveHere: boolean;
}

export const NO_PLACE_SETTINGS: PlaceSettings = {
  setup: [],
  diskMb: null,
  restAfterMs: null,
  removeAfterMs: null,
  moveHere: false,
};

/** A link of ours is replaced; anything else under its name stays, and the step fails. */
const MAKE_LINK = `
if [ -L "$2" ]; then rm -- "$2"; fi
if [ -e "$2" ]; then echo "$2 exists and is no link."; exit 1; fi
ln -s -- "$1" "$2"`;

export function placeSettings(settings: SandboxSettings, absolute: (path: string) => string): PlaceSettings {
  const { setup = [], links = [], diskMb = null, restAfterSeconds, removeAfterSeconds, moveHere = false } = settings;
  const ms = (seconds: number | undefined) => (seconds === undefined ? null : seconds * 1_000);
  const link = ({ name, path }: Output<typeof LINK>): SetupStep => ({
    name: `link ${name}`,
    command: ['/bin/sh', '-c', MAKE_LINK, 'link', absolute(path), name],
    timeoutMs: 60_000,
  });
  const step = ({ timeoutSeconds = 600, ...rest }: Output<typeof STEP>): SetupStep => ({
    ...rest,
    timeoutMs: timeoutSeconds * 1_000,
  });
  return {
    setup: [...links.map(link), ...setup.map(step)],
    diskMb,
    restAfterMs: ms(restAfterSeconds),
    removeAfterMs: ms(removeAfterSeconds),
    moveHere,
  };
}

/** Complete, with absolute paths. */
export interface IsolationSettings {
  readonly network: (typeof NETWORKS)[number];
  readonly allow: readonly string[];
  readonly key: Required<Output<typeof KEY>> | null;
  readonly limits: Output<typeof LIMITS>;
  readonly binds: readonly Output<typeof BIND>[];
}

export interface ContainerSettings extends IsolationSettings {
  readonly engine: (typeof ENGINES)[number];
  /** The root of the container: an image by its name, or a folder of this machine. */
  readonly root: { readonly image: string } | { readonly folder: string };
}

/** How agents are isolated, and by what. */
export type Isolation =
  | { readonly by: 'bubblewrap'; readonly settings: IsolationSettings }
  | { readonly by: 'container'; readonly settings: ContainerSettings };

/** Complete, with absolute paths. */
export interface SshSettings {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** On the other machine; a relative one begins at the home of the user there. */
  readonly root: string;
  readonly hostKey: string | null;
  /** Null: the usual file of the user. */
  readonly knownHosts: string | null;
  readonly identityFile: string | null;
  /** Any server with the same settings has the same sandboxes, so they are a place of their own. */
  readonly place: string;
}

const ONLY_ISOLATED = ['network', 'allow', 'key', 'limits', 'binds'] as const;
const ONLY_CONTAINER = ['engine', 'image', 'rootfs'] as const;
const ONLY_SSH = ['host', 'port', 'user', 'hostKey', 'knownHosts', 'identityFile'] as const;

/** Null: no setting contradicts another. */
function contradiction(settings: SandboxSettings): string | null {
  const { kind = 'directory', network = 'model', allow = [], key } = settings;
  const isIsolated = kind === 'bubblewrap' || kind === 'container';
  const isSet = (name: keyof SandboxSettings) => settings[name] !== undefined;
  const bySsh = ONLY_SSH.find(isSet);
  if (kind !== 'ssh' && bySsh !== undefined) return `"sandbox.${bySsh}" needs "sandbox.kind": "ssh"`;
  const ofContainer = ONLY_CONTAINER.find(isSet);
  if (kind !== 'container' && ofContainer !== undefined)
    return `"sandbox.${ofContainer}" needs "sandbox.kind": "container"`;
  const ofIsolated = ONLY_ISOLATED.find(isSet);
  if (!isIsolated && ofIsolated !== undefined)
    return `"sandbox.${ofIsolated}" needs "sandbox.kind": "bubblewrap" or "container"`;
  if (settings.place !== undefined && (kind === 'ssh' || isVendor(kind)))
    return `"sandbox.place" names directories of servers, and "${kind}" has its own machines`;
  if (settings.place !== undefined && settings.root === undefined)
    return '"sandbox.place" needs "sandbox.root": a directory that all servers of that place reach';
  const chosen = (['worktree', 'directories'] as const).find((name) => settings[name]);
  if (kind === 'ssh' && chosen) return `"sandbox.${chosen}" needs files on this machine, and "ssh" has none`;
  if (kind === 'ssh')
    return settings.host && settings.user ? null : '"sandbox.kind": "ssh" needs "sandbox.host" and "sandbox.user"';
  if (settings.machine !== undefined && !isVendor(kind)) {
    return '"sandbox.machine" needs "sandbox.kind": "vercel" or "e2b"';
  }
  const local = (['root', 'worktree', 'directories'] as const).find(isSet);
  if (local !== undefined && isVendor(kind)) return `"sandbox.${local}" cannot be used with rented machines`;
  if (!isIsolated) return null;
  const reaches = key !== undefined ? 'key' : allow.length > 0 ? 'allow' : null;
  if (network !== 'model' && reaches !== null) return `"sandbox.${reaches}" needs "sandbox.network": "model"`;
  if (network === 'model' && reaches === null)
    return '"sandbox.network": "model" reaches nothing without "allow" or "key"';
  return kind === 'container' ? rootContradiction(settings) : null;
}

function rootContradiction({ engine = 'podman', image, rootfs }: SandboxSettings): string | null {
  if ((image === undefined) === (rootfs === undefined))
    return 'a container needs either "sandbox.image" or "sandbox.rootfs"';
  return rootfs !== undefined && engine === 'docker' ? '"sandbox.rootfs" needs "sandbox.engine": "podman"' : null;
}

const NETWORK_HINT =
  'Write "allow": ["api.anthropic.com"], or "key": {} to keep the key of Claude outside, or set "network" to "none" or "all". See docs/sandboxes.md.';
const VENDOR_HINT = 'The settings of rented machines are in "sandbox.machine". See docs/sandboxes.md.';
const HINTS = {
  directory: 'Set the kind, or leave the setting out. See docs/sandboxes.md.',
  vercel: VENDOR_HINT,
  e2b: VENDOR_HINT,
  ssh: 'Write "host": "build.example.org" and "user": "agents". See docs/sandboxes.md.',
  bubblewrap: NETWORK_HINT,
  container: `Write "image": "localhost/agent:1". ${NETWORK_HINT}`,
} as const;

function checkSandbox(settings: SandboxSettings): void {
  const wrong = contradiction(settings);
  const hint = HINTS[settings.kind ?? 'directory'];
  if (wrong !== null) throw new ThroughlineError('invalid', `Settings: ${wrong}.`, { hint });
}

/** Null: the sandboxes are not isolated. Throws `invalid` when one setting contradicts another. */
export function isolationSettings(settings: SandboxSettings, absolute: (path: string) => string): Isolation | null {
  const { kind = 'directory', network = 'model', allow = [], key, limits = {}, binds = [] } = settings;
  checkSandbox(settings);
  if (kind !== 'bubblewrap' && kind !== 'container') return null;
  const claude = { variable: 'ANTHROPIC_API_KEY', header: 'x-api-key', urlVariable: 'ANTHROPIC_BASE_URL' };
  const common: IsolationSettings = {
    network,
    allow,
    key: key === undefined ? null : { ...claude, url: 'https://api.anthropic.com', ...key },
    limits,
    binds: binds.map((bind) => ({ ...bind, path: absolute(bind.path) })),
  };
  if (kind === 'bubblewrap') return { by: kind, settings: common };
  const { engine = 'podman', image, rootfs = '' } = settings;
  const root = image === undefined ? { folder: absolute(rootfs) } : { image };
  return { by: kind, settings: { ...common, engine, root } };
}

/** Null: the sandboxes are on this machine. Throws `invalid` when one setting contradicts another, or one is missing. */
export function sshSettings(settings: SandboxSettings, absolute: (path: string) => string): SshSettings | null {
  checkSandbox(settings);
  const { kind, host = '', port = 22, user = '', root = '.throughline/sandboxes', hostKey = null } = settings;
  if (kind !== 'ssh') return null;
  const { knownHosts, identityFile } = settings;
  const path = (given: string | undefined) => (given === undefined ? null : absolute(given));
  const place = `ssh://${user}@${host}:${port}/${root}`;
  return { host, port, user, root, place, hostKey, knownHosts: path(knownHosts), identityFile: path(identityFile) };
}
