import { execFileSync } from 'node:child_process';
import { hostname } from 'node:os';
import type { ProcessEntry, ProcessTable } from './process-table.ts';

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
