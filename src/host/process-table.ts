import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { MARK } from '../core/process.ts';

/** What the operating system knows about one process right now. */
export interface ProcessEntry {
  /** When it started; two processes that share a pid differ in it. */
  readonly started: string;
  /** The process group it is in. */
  readonly group: number;
  /** It has ended and only waits to be reaped. */
  readonly zombie: boolean;
}

/** One operating system's way of looking at processes. */
export interface ProcessTable {
  /** Null: there is no such process, or it is hidden from us. */
  look(pid: number): ProcessEntry | null;
  /**
   * Those whose environment has a mark, as far as it is shown to us, and null for each of the others, so that whoever looks can pause
   * between any two. Empty where the system shows no environments.
   */
  marked(): Iterable<Marked | null>;
  /** This boot of this machine. */
  boot(): string;
  /** The pid namespace that we live in. */
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
      return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
    } catch {
      return null;
    }
  },
  *marked() {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      const mark = markOf(pid);
      yield mark === null ? null : { pid: Number(pid), mark };
    }
  },
  boot: () => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim(),
  namespace: () => readlinkSync('/proc/self/ns/pid'),
};

/** In the environment that it was started with. Other users' are not shown; one that has ended has none. */
function markOf(pid: string): string | null {
  try {
    const environment = `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`;
    const at = environment.indexOf(BEFORE_MARK);
    return at === -1 ? null : environment.slice(at + BEFORE_MARK.length, environment.indexOf('\0', at + 1));
  } catch {
    return null;
  }
}

const STATE = 0;
const GROUP = 2;
/** Field 22 of the file: clock ticks since the boot. */
const STARTED = 19;

/**
 * Parses /proc/PID/stat. The second field is the program's name in parentheses; a name may itself hold spaces, parentheses
 * and newlines, so everything up to the last parenthesis is skipped. Null: the text is not such a line.
 */
export function parseStat(stat: string): ProcessEntry | null {
  const close = stat.lastIndexOf(')');
  if (close === -1) return null;
  const fields = stat
    .slice(close + 1)
    .trim()
    .split(/\s+/);
  const started = fields[STARTED];
  const group = Number(fields[GROUP]);
  const state = fields[STATE];
  if (started === undefined || state === undefined || !Number.isInteger(group)) return null;
  return { started, group, zombie: state === 'Z' || state === 'X' };
}

/**
 * macOS, and the fallback wherever there is no /proc: `ps` and `sysctl`. It starts a program for every look (a few
 * milliseconds), and start times have a resolution of one second: a pid that is given out again within the second of its
 * predecessor's start is not told apart. There are no pid namespaces.
 */
export const ps: ProcessTable = {
  look(pid) {
    const line = output('ps', ['-o', 'stat=,pgid=,lstart=', '-p', String(pid)]);
    return line === null ? null : parsePs(line);
  },
  // Environments are not shown to others here, not even to their owner.
  marked: () => [],
  // Where the session's own id is missing, the time of the boot stands in for it; it may shift when the clock is set.
  boot: () =>
    output('sysctl', ['-n', 'kern.bootsessionuuid']) ??
    output('sysctl', ['-n', 'kern.boottime']) ??
    `unknown-${hostname()}`,
  namespace: () => 'host',
};

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
