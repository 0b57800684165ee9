import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { MARK } from '../core/process.ts';
import type { ProcessEntry, ProcessTable } from './process-table.ts';

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
  marked(marks) {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return pids.filter((pid) => marks.has(markOf(pid) ?? '')).map(Number);
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
