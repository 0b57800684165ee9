import { depth, isBelow, isOfSystem, mountedPaths, nearest, type Visible } from '../shared/isolated/visible.ts';

/*
 * The arguments of bubblewrap. A path that is not named here does not exist in the sandbox. Only these are bound: the programs of the system
 * and of the agent, its work and state, and what the settings name.
 */

export interface Isolation {
  readonly network: 'none' | 'model' | 'all';
  /** The whole environment: the program inherits nothing from bubblewrap. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly mounts: Mounts;
  /** Files of `etcPaths` that bubblewrap gets open, the first as the number `FIRST_FILE`, in this order. */
  readonly files: readonly string[];
}

/** Absolute paths, links resolved; each has the same name inside and outside. */
export interface Mounts extends Visible {
  /** The folders of the system's programs. `link`: it is a link to this. */
  readonly system: readonly { readonly path: string; readonly link: string | null }[];
  /** Files and folders of /proc that this machine has, of `PROC_FIXED` and `PROC_HIDDEN`. */
  readonly proc: readonly { readonly path: string; readonly isFolder: boolean }[];
  /** Links to programs, so that a program is found by the name that was asked for. */
  readonly links: readonly { readonly path: string; readonly to: string }[];
}

export const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];

/**
 * A program that root has started may write to root's files in /proc, also without any capability. One of them, the core pattern, names a
 * program that the kernel runs outside of the sandbox. Bubblewrap covers these only if the folder itself is writable.
 */
export const PROC_FIXED = ['bus', 'fs', 'irq', 'sys', 'sysrq-trigger'].map((name) => `/proc/${name}`);
/** Files that show details of the machine, and keys. */
export const PROC_HIDDEN = [
  ...['acpi', 'asound', 'kcore', 'keys', 'kmsg', 'latency_stats', 'sched_debug', 'scsi', 'timer_list', 'timer_stats'],
].map((name) => `/proc/${name}`);

/** The descriptor of the first open file: after the pipes of start.ts. */
const FIRST_FILE = 9;

/** What programs need of /etc. The rest may hold secrets, such as /etc/shadow. */
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

export function etcPaths(network: Isolation['network']): string[] {
  return [...ETC, ...(network === 'all' ? ['resolv.conf'] : [])].map((name) => `/etc/${name}`);
}

const ISOLATED = [
  // Everything ends with bubblewrap, and bubblewrap with us. Without a session of its own, a program could insert input into our terminal.
  ...['--die-with-parent', '--new-session'],
  ...['--unshare-user', '--disable-userns', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
  // Started by root, bubblewrap would otherwise keep all of root's capabilities.
  ...['--cap-drop', 'ALL', '--hostname', 'sandbox', '--clearenv'],
];

export function isolationArguments({ network, env, cwd, mounts, files }: Isolation): string[] {
  return [
    ...ISOLATED,
    ...(network === 'all' ? [] : ['--unshare-net']),
    ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value]),
    ...mounts.system.flatMap(({ path, link }) =>
      link === null ? ['--ro-bind', path, path] : ['--symlink', link, path],
    ),
    // Files are copied if possible: each mount takes about a third of a millisecond.
    ...files.flatMap((path, n) => ['--perms', '0444', '--file', String(FIRST_FILE + n), path]),
    ...etcPaths(network).flatMap((path) => (files.includes(path) ? [] : ['--ro-bind-try', path, path])),
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

function boundPaths(mounts: Mounts): string[] {
  const mounted = mountedPaths(mounts, systemPaths(mounts));
  const own = [...mounted].slice(mounts.system.length);
  const words = own.flatMap(([path, kind]) => {
    if (kind === 'hidden') return ['--tmpfs', path];
    return [kind === 'write' || kind === 'held' ? '--bind' : '--ro-bind', path, path];
  });
  // A bound folder already has the links that are in it.
  const missing = mounts.links.filter(({ path }) => [undefined, 'hidden'].includes(nearest(mounted, path)));
  return [...words, ...missing.flatMap(({ path, to }) => ['--symlink', to, path])];
}

export const systemPaths = ({ system }: Mounts) => system.map(({ path }) => path);

/**
 * What is bound so that a program runs: the outermost node_modules that it is in, with the packages that it needs; else its folder. Only
 * the file itself is bound if that folder is the person's home or above it, or holds unrelated files, such as /tmp or /opt.
 */
export function programPath(real: string, home: string): string {
  const at = real.indexOf('/node_modules/');
  if (at !== -1) return real.slice(0, at + '/node_modules'.length);
  const folder = real.slice(0, real.lastIndexOf('/')) || '/';
  return isBelow(home, folder) || isOfSystem(folder) || depth(folder) === 2 ? real : folder;
}
