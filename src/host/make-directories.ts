import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a directory with all that lead to it, for this user alone. One after the other: Node's own way to make them all never
 * comes to an end where a directory that is there takes no other, as /proc.
 */
export function makeDirectories(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found === undefined && dirname(path) !== path) makeDirectories(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it in between.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
