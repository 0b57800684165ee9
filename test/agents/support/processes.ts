// The processes of this machine, also those in containers, read from /proc.
import { readdirSync, readFileSync } from 'node:fs';

const allPids = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/** The processes that have this word among their variables or arguments. */
export function processesWith(file: 'environ' | 'cmdline', word: string): number[] {
  return allPids().filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, 'latin1').split('\0').includes(word);
    } catch {
      return false; // it has ended, or belongs to another user
    }
  });
}

/** The name of the program of a process; null: the process has ended. */
export function nameOf(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trimEnd();
  } catch {
    return null;
  }
}

export function parentOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}
