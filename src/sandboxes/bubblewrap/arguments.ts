/*
 * The words that bubblewrap is called with, from what was decided. What is not named here does not exist in the sandbox: no path is bound but
 * those of the system's programs, the agent's programs, its work and state, and what the settings name.
 */

export interface Isolation {
  readonly network: 'none' | 'model' | 'all';
  /** All of the environment: nothing of bubblewrap's own reaches the program. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly mounts: Mounts;
}

/** Absolute paths, links resolved; each has the same name inside and outside. */
export interface Mounts {
  /** The folders of the system's programs. `link`: it is a link to this. */
  readonly system: readonly { readonly path: string; readonly link: string | null }[];
  /** Files and folders of /proc that this machine has, of `PROC_FIXED` and `PROC_HIDDEN`. */
  readonly proc: readonly { readonly path: string; readonly isFolder: boolean }[];
  readonly write: readonly string[];
  readonly read: readonly string[];
  /** Links that lead to one of these, so that a program is found by the name that it was asked for. */
  readonly links: readonly { readonly path: string; readonly to: string }[];
  /** Folders that are empty in the sandbox, also where a folder above them is bound. */
  readonly hidden: readonly string[];
  /** Files that exist and cannot be changed, also where a folder above them can. */
  readonly fixed: readonly string[];
  /** Folders above those of `hidden` and `fixed`. Moved away, they would take what is mounted below with them, and make room for another. */
  readonly held: readonly string[];
}

export const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];

/**
 * Started by root, a program may write what belongs to root in /proc, also without any capability: the core pattern names a program that the
 * kernel runs outside. Bubblewrap covers them only if the folder itself can be written to.
 */
export const PROC_FIXED = ['bus', 'fs', 'irq', 'sys', 'sysrq-trigger'].map((name) => `/proc/${name}`);
/** What tells of the machine, and of keys. */
export const PROC_HIDDEN = [
  ...['acpi', 'asound', 'kcore', 'keys', 'kmsg', 'latency_stats', 'sched_debug', 'scsi', 'timer_list', 'timer_stats'],
].map((name) => `/proc/${name}`);

/** What programs need of /etc. The rest may hold secrets: as root, we could read /etc/shadow. */
const ETC = [
  ...['alternatives', 'bash.bashrc', 'ca-certificates', 'ca-certificates.conf', 'crypto-policies', 'debian_version'],
  ...['fonts', 'gai.conf', 'group', 'host.conf', 'hosts', 'inputrc', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d'],
  ...['locale.alias', 'locale.conf', 'localtime', 'login.defs', 'magic', 'mime.types', 'nsswitch.conf', 'os-release'],
  ...['passwd', 'perl', 'profile', 'profile.d', 'protocols', 'python3', 'redhat-release', 'services', 'shells'],
  ...['terminfo', 'timezone'],
  // Certificates, without the private keys beside them.
  ...['ssl/ca-bundle.pem', 'ssl/cert.pem', 'ssl/certs', 'ssl/openssl.cnf'],
  ...['pki/ca-trust', 'pki/tls/cert.pem', 'pki/tls/certs', 'pki/tls/openssl.cnf'],
];

const ISOLATED = [
  // Everything ends with bubblewrap, and bubblewrap with us. Without a session of its own, a program could type into our terminal.
  ...['--die-with-parent', '--new-session'],
  ...['--unshare-user', '--disable-userns', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
  // Started by root, bubblewrap would otherwise keep all of root's capabilities.
  ...['--cap-drop', 'ALL', '--hostname', 'sandbox', '--clearenv'],
];

export function isolationArguments({ network, env, cwd, mounts }: Isolation): string[] {
  return [
    ...ISOLATED,
    ...(network === 'all' ? [] : ['--unshare-net']),
    ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value]),
    ...mounts.system.flatMap(({ path, link }) =>
      link === null ? ['--ro-bind', path, path] : ['--symlink', link, path],
    ),
    ...[...ETC, ...(network === 'all' ? ['resolv.conf'] : [])].flatMap((name) => {
      return ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`];
    }),
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--tmpfs', '/var/tmp', '--tmpfs', '/run'],
    ...mounts.proc.flatMap(coveredInProc),
    ...boundPaths(mounts),
    ...['--remount-ro', '/', '--chdir', cwd],
  ];
}

function coveredInProc({ path, isFolder }: Mounts['proc'][number]): string[] {
  if (PROC_FIXED.includes(path)) return ['--ro-bind', path, path];
  return isFolder ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path];
}

type Kind = 'write' | 'read' | 'hidden' | 'fixed' | 'held';

function boundPaths(mounts: Mounts): string[] {
  const kept = keptPaths(mounts);
  const own = [...kept].slice(mounts.system.length);
  const words = own.flatMap(([path, kind]) => {
    if (kind === 'hidden') return ['--tmpfs', path];
    return [kind === 'write' || kind === 'held' ? '--bind' : '--ro-bind', path, path];
  });
  // Below a folder that is bound, the link itself is there.
  const missing = mounts.links.filter(({ path }) => [undefined, 'hidden'].includes(nearest(kept, path)));
  return [...words, ...missing.flatMap(({ path, to }) => ['--symlink', to, path])];
}

/** What is mounted where. Outer paths first, so that none hides an inner one; and none twice. */
function keptPaths({ system, write, read, hidden, fixed, held }: Mounts): Map<string, Kind> {
  const of = (kind: Kind, paths: readonly string[]) => paths.map((path) => ({ kind, path }));
  const all = [...of('write', write), ...of('read', read), ...of('hidden', hidden), ...of('fixed', fixed)];
  const kept = new Map<string, Kind>(system.map(({ path }) => [path, 'read']));
  for (const { kind, path } of [...all, ...of('held', held)].toSorted((a, b) => depth(a.path) - depth(b.path))) {
    if (isNeeded(kind, nearest(kept, path)) && !(kind === 'held' && kept.has(path))) kept.set(path, kind);
  }
  return kept;
}

/** What programs in the sandbox may do with a path, links resolved: for whoever reads and writes for them from outside. */
export function accessTo(mounts: Mounts): (path: string) => 'write' | 'read' | null {
  const kept = keptPaths(mounts);
  return (path) => {
    const kind = nearest(kept, path);
    if (kind === undefined || kind === 'hidden') return null;
    return kind === 'write' || kind === 'held' ? 'write' : 'read';
  };
}

/** Given what the sandbox has at a path already; undefined: nothing. */
function isNeeded(kind: Kind, around: Kind | undefined): boolean {
  const isWritten = around === 'write' || around === 'held';
  if (kind === 'hidden') return around !== undefined && around !== 'hidden';
  if (kind === 'fixed' || kind === 'held') return isWritten;
  if (kind === 'write') return !isWritten;
  return around === undefined || around === 'hidden';
}

function nearest(kept: ReadonlyMap<string, Kind>, path: string): Kind | undefined {
  const above = [...kept.keys()].filter((one) => isBelow(path, one));
  const longest = above.toSorted((a, b) => b.length - a.length)[0];
  return longest === undefined ? undefined : kept.get(longest);
}

/** "/a" has 2. */
const depth = (path: string) => path.split('/').length;

/** Or it is the folder itself. */
export function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === '/' ? '/' : `${folder}/`);
}

/**
 * What is bound so that a program runs: the outermost node_modules that it is in, with the packages that it needs; else its folder;
 * and only itself when that folder is the person's home, above it, or one that everything is in: /tmp, /opt.
 */
export function programPath(real: string, home: string): string {
  const at = real.indexOf('/node_modules/');
  if (at !== -1) return real.slice(0, at + '/node_modules'.length);
  const folder = real.slice(0, real.lastIndexOf('/')) || '/';
  return isBelow(home, folder) || isOfSystem(folder) || depth(folder) === 2 ? real : folder;
}

const NEVER = ['/', '/bin', '/boot', '/etc', '/lib', '/lib64', '/run', '/sbin', '/tmp', '/usr', '/var'];
const NEVER_BELOW = ['/dev', '/proc', '/sys'];

/** Folders that would open the sandbox if an agent could write to them. */
export function isOfSystem(work: string): boolean {
  return NEVER.includes(work) || NEVER_BELOW.some((folder) => isBelow(work, folder));
}
