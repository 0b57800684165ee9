import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import { hostname } from 'node:os';
import { MARK } from '../core/process.ts';

/** What the operating system shows about one process right now. */
export interface ProcessEntry {
  /** When it started; two processes that share a pid differ in it. */
  readonly started: string;
  /** The process group it is in. */
  readonly group: number;
  /** It has ended with all its threads, and only waits to be reaped. */
  readonly zombie: boolean;
}

/** How processes are read on one operating system. */
export interface ProcessTable {
  /** Null: there is no such process, or it is hidden from us. */
  look(pid: number): ProcessEntry | null;
  /** A look starts a program. Left out: it takes microseconds. */
  readonly isSlow?: true;
  /**
   * The processes whose environment has a mark, and null for each of the others, so that the caller can pause between any two. Empty where
   * the system shows no environments.
   */
  marked(): Iterable<Marked | null>;
  /** This boot of this machine. */
  boot(): string;
  /** Our pid namespace. */
  namespace(): string;
}

export interface Marked {
  readonly pid: number;
  readonly mark: string;
}

const BEFORE_MARK = `\0${MARK}=`;

/** Linux: everything is in /proc, and reading it costs microseconds. */
export const procfs: ProcessTable = {
  look(pid) {
    try {
      return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    } catch {
      return null;
    }
  },
  *marked() {
    const withoutEnvironment = kernelThreads();
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      const mark = withoutEnvironment.has(pid) ? null : markOf(pid);
      yield mark === null ? null : { pid: Number(pid), mark };
    }
  },
  boot: () => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim(),
  namespace: () => readlinkSync('/proc/self/ns/pid'),
};

/** The process that starts all threads of the kernel. In a pid namespace of our own, this pid may be any process. */
const KTHREADD = 2;
/** PF_KTHREAD: the kernel sets this flag, a program cannot. */
const IS_KERNEL_THREAD = 0x00200000;
/** Field 9 of /proc/PID/stat. */
const FLAGS = 6;

/** On many machines most processes are kernel threads. Skipping them saves most of the time of a look. */
function kernelThreads(): ReadonlySet<string> {
  try {
    if (!isKernelThread(readFileSync(`/proc/${KTHREADD}/stat`, 'latin1'))) return new Set();
    return new Set(readFileSync(`/proc/${KTHREADD}/task/${KTHREADD}/children`, 'latin1').trim().split(' '));
  } catch {
    return new Set(); // not every kernel lists children
  }
}

/** By its /proc/PID/stat. */
export function isKernelThread(stat: string): boolean {
  return (Number(fieldsOf(stat)?.[FLAGS]) & IS_KERNEL_THREAD) !== 0;
}

/** The mark in the environment that a process was started with. Null: none, or the environment is not readable. */
function markOf(pid: string): string | null {
  try {
    const environment = readEnvironment(pid);
    const at = environment.indexOf(BEFORE_MARK);
    if (at === -1) return null;
    return environment.toString('latin1', at + BEFORE_MARK.length, environment.indexOf(0, at + 1));
  } catch {
    return null;
  }
}

/** More than a program can be started with (6 MB). A running program can make its environment look larger. */
const LONGEST_ENVIRONMENT = 8 * 2 ** 20;

/**
 * Reused for all environments: there may be hundreds of processes, and they are read at the end of every session. It grows to the longest
 * environment. A new buffer of the largest size in every call would make V8 collect garbage after a few calls.
 */
let space = Buffer.allocUnsafe(64 * 1024);

/** Every variable with a zero byte before and after it. The buffer is valid until the next call. */
function readEnvironment(pid: string): Buffer {
  const file = openSync(`/proc/${pid}/environ`, 'r');
  try {
    let end = 1 + readSync(file, space, 1, space.length - 2, 0);
    while (end === space.length - 1 && space.length < LONGEST_ENVIRONMENT) {
      space = Buffer.allocUnsafe(2 * space.length);
      end = 1 + readSync(file, space, 1, space.length - 2, 0);
    }
    space[0] = 0;
    space[end] = 0;
    return space.subarray(0, end + 1);
  } finally {
    closeSync(file);
  }
}

const STATE = 0;
const GROUP = 2;
/** Field 20 of the file. */
const THREADS = 17;
/** Field 22 of the file: clock ticks since the boot. */
const STARTED = 19;

/** Parses /proc/PID/stat. Null: the text is not such a line. */
export function parseStat(stat: string): ProcessEntry | null {
  const fields = fieldsOf(stat);
  if (fields === null) return null;
  const started = fields[STARTED];
  const group = Number(fields[GROUP]);
  const state = fields[STATE];
  if (started === undefined || state === undefined || !Number.isInteger(group)) return null;
  // A killed process of several threads is shown as a zombie for milliseconds while the others still end.
  const zombie = (state === 'Z' || state === 'X') && Number(fields[THREADS]) <= 1;
  return { started, group, zombie };
}

/**
 * The fields of /proc/PID/stat from the third on. The second is the program's name in parentheses; a name may itself hold spaces,
 * parentheses and newlines, so everything up to the last parenthesis is skipped.
 */
function fieldsOf(stat: string): string[] | null {
  const close = stat.lastIndexOf(')');
  if (close === -1) return null;
  return stat
    .slice(close + 1)
    .trim()
    .split(/\s+/);
}

/**
 * macOS, and the fallback wherever there is no /proc: `ps` and `sysctl`. It starts a program for every look (a few
 * milliseconds), and start times have a resolution of one second: a pid that is reused within the same second is not noticed. There are no
 * pid namespaces.
 */
export const ps: ProcessTable = {
  look(pid) {
    const line = output('ps', ['-o', 'stat=,pgid=,lstart=', '-p', String(pid)]);
    return line === null ? null : parsePs(line);
  },
  isSlow: true,
  // Here the system shows no environments, not even to their owner.
  marked: () => [],
  // Without an id of the boot session, we use the time of the boot. It may shift when the clock is set.
  boot: () =>
    output('sysctl', ['-n', 'kern.bootsessionuuid']) ??
    output('sysctl', ['-n', 'kern.boottime']) ??
    `unknown-${hostname()}`,
  namespace: () => 'host',
};

/**
 * An id of this machine that stays the same after a restart; null: there is none. On Linux it is the id that was made when the system was
 * installed, together with the name of the machine. A container has none: its id is that of its image, and it can be moved to another
 * machine.
 */
export function machine(): string | null {
  if (process.platform !== 'linux')
    return /"IOPlatformUUID" = "([^"]+)"/.exec(output('ioreg', IOREG) ?? '')?.[1] ?? null;
  try {
    const id = readFileSync('/etc/machine-id', 'latin1').trim();
    return machineOf({ id, hostname: hostname(), namespace: procfs.namespace() });
  } catch {
    return null;
  }
}

const IOREG = ['-rd1', '-c', 'IOPlatformExpertDevice'];
/** The number of the first pid namespace of a kernel; no other has it. */
const FIRST_NAMESPACE = 'pid:[4026531836]';

export function machineOf(seen: { id: string; hostname: string; namespace: string }): string | null {
  if (seen.namespace !== FIRST_NAMESPACE || !/^[0-9a-f]{32}$/.test(seen.id)) return null;
  return `${seen.id} ${seen.hostname}`;
}

/** Parses a line such as `Ss  4711 Tue Mar  4 05:06:07 2025`. Null: it is not one. */
export function parsePs(line: string): ProcessEntry | null {
  const match = /^(\S+)\s+(\d+)\s+(\S.*)$/.exec(line.trim());
  const [, state, group, started] = match ?? [];
  if (state === undefined || group === undefined || started === undefined) return null;
  return { started: started.replace(/\s+/g, ' '), group: Number(group), zombie: state.startsWith('Z') };
}

function output(program: string, args: readonly string[]): string | null {
  try {
    // LC_ALL: a start time must read the same in every process that compares it.
    const env = { PATH: process.env.PATH ?? '/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' };
    const text = execFileSync(program, args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    return text === '' ? null : text;
  } catch {
    return null;
  }
}
