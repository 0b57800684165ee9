import { MARK } from '../../core/process.ts';
import type { ContainerSettings } from '../../core/sandbox/sandbox-settings.ts';
import { type Kind, mountedPaths, type Visible } from '../shared/isolated/visible.ts';
import { type EngineName, MARK_LABEL, PART_LABEL } from './engine.ts';

/* The arguments of podman or docker. Every option that isolates is given, whatever the defaults of the machine are. */

export interface Contained {
  readonly settings: Pick<ContainerSettings, 'engine' | 'root' | 'network' | 'limits'>;
  readonly visible: Visible;
  readonly mark: string;
  readonly part: string | null;
  /** The file with the filter of system calls. */
  readonly filter: string;
  /** Our own limits: the engine's default may be higher, and would be refused. */
  readonly most: { readonly openFiles: number; readonly processes: number };
  /** Files for the pids of its first process and of conmon; null: docker has no such files. */
  readonly pidFiles: { readonly first: string; readonly conmon: string } | null;
}

/** An engine passes on the proxies of its own settings, whose addresses may have a password. */
const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'FTP_PROXY', 'NO_PROXY', 'ALL_PROXY'];
export const UNSET = PROXIES.flatMap((name) => [name, name.toLowerCase()]);

const ISOLATED = [
  ...['run', '--interactive', '--rm', '--init', '--pull', 'never', '--log-driver', 'none'],
  ...['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--privileged=false', '--read-only'],
  ...['--ipc', 'private', '--cgroupns', 'private', '--hostname', 'sandbox', '--workdir', '/'],
];
const OF_ENGINE: Readonly<Record<EngineName, readonly string[]>> = {
  podman: ['--http-proxy=false', '--systemd=false', '--read-only-tmpfs=false', '--image-volume', 'ignore'],
  docker: [],
};

/** The arguments up to the image; those of the shell in it come after them. */
export function containerArguments(contained: Contained): string[] {
  const { settings, visible, mark, part, filter, pidFiles } = contained;
  const { engine, root, network } = settings;
  // Our own user, who owns the files. In podman's user namespace its number is 0.
  const user = engine === 'podman' ? '0:0' : `${process.getuid?.()}:${process.getgid?.()}`;
  return [
    ...ISOLATED,
    ...OF_ENGINE[engine],
    ...['--label', `${MARK_LABEL}=${mark}`, ...(part === null ? [] : ['--label', `${PART_LABEL}=${part}`])],
    ...['--network', network === 'all' ? 'host' : 'none', '--user', user],
    ...['--security-opt', `seccomp=${filter}`],
    ...(pidFiles === null ? [] : ['--pidfile', pidFiles.first, '--conmon-pidfile', pidFiles.conmon]),
    ...['--env', `${MARK}=${mark}`, ...UNSET.flatMap((name) => ['--env', `${name}=`])],
    ...limitArguments(contained),
    ...['/tmp', '/var/tmp', '/run'].flatMap((path) => ['--tmpfs', `${path}:rw,nosuid,nodev,mode=1777`]),
    ...[...mountedPaths(visible)].flatMap(([path, kind]) => ['--mount', mountOf(engine, path, kind)]),
    ...['--entrypoint', '/bin/sh'],
    ...('image' in root ? [root.image] : ['--rootfs', `${root.folder}:O`]),
  ];
}

function limitArguments({ settings: { limits }, most }: Contained): string[] {
  const { processes, memoryMb, openFiles = most.openFiles } = limits;
  return [
    ...['--ulimit', `nofile=${openFiles}:${openFiles}`, '--ulimit', `nproc=${most.processes}:${most.processes}`],
    // One of them is the init of the container.
    ...(processes === undefined ? [] : ['--pids-limit', String(processes + 1)]),
    ...(memoryMb === undefined ? [] : ['--memory', `${memoryMb}m`, '--memory-swap', `${memoryMb}m`]),
  ];
}

function mountOf(engine: EngineName, path: string, kind: Kind): string {
  const target = field(`destination=${path}`);
  // Without "notmpcopyup", podman copies what is to be hidden into it.
  if (kind === 'hidden') return ['type=tmpfs', target, ...(engine === 'podman' ? ['notmpcopyup'] : [])].join(',');
  const isWritten = kind === 'write' || kind === 'held';
  return ['type=bind', field(`source=${path}`), target, ...(isWritten ? [] : ['readonly'])].join(',');
}

/** The engine reads a mount as a line of CSV. */
function field(text: string): string {
  if (/[\0\r\n]/.test(text)) throw new Error('a path has a line break or a zero byte');
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
