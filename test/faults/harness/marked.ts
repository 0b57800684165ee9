import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { until } from './until.ts';

/** The name of the variable that every agent of a test has in its environment. */
export const MARK = 'THROUGHLINE_FAULTS_MARK';

export interface Marked {
  readonly pid: number;
  readonly parent: number;
}

/** Living processes with the mark: the agents of one test, and no others. */
export function marked(mark: string): Marked[] {
  return process.platform === 'linux' ? fromProc(`${MARK}=${mark}`) : fromPs(`${MARK}=${mark}`);
}

/** Whether a process was stopped by a signal. True on systems where that cannot be seen. */
export function isStopped(pid: number): boolean {
  if (process.platform !== 'linux') return true;
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return stat.charAt(stat.lastIndexOf(')') + 2) === 'T';
}

/** Ends all processes with the mark, by their pids. */
export async function endMarked(mark: string): Promise<void> {
  await until('the agents of the test to end', () => {
    const left = marked(mark);
    for (const { pid } of left) endProcess(pid);
    return left.length === 0;
  });
}

export function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

function fromProc(variable: string): Marked[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      if (!readFileSync(`/proc/${name}/environ`, 'latin1').split('\0').includes(variable)) return [];
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return state === 'Z' || state === 'X' ? [] : [{ pid: Number(name), parent: Number(parent) }];
    } catch {
      return []; // it has just ended, or belongs to another user
    }
  });
}

function fromPs(variable: string): Marked[] {
  const text = execFileSync('ps', ['-Eww', '-axo', 'pid=,ppid=,stat=,command='], { encoding: 'utf8' });
  return text.split('\n').flatMap((line) => {
    const [, pid, parent, state, rest = ''] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    const living = state !== undefined && !state.startsWith('Z') && rest.split(' ').includes(variable);
    return living ? [{ pid: Number(pid), parent: Number(parent) }] : [];
  });
}
