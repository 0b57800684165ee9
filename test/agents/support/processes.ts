// Processes of this machine, wherever they run on it.
import { readdirSync, readFileSync } from 'node:fs';

const all = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/** Those that have this word in their environment or among their arguments. */
export function processesWith(file: 'environ' | 'cmdline', word: string): number[] {
  return all().filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, 'latin1').split('\0').includes(word);
    } catch {
      return false; // it has ended, or is not ours
    }
  });
}

/** The name of its program; null: it has ended, or is not ours. */
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
