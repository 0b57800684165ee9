/** How the names of the directories begin in which a restore prepares the new data. */
export const RESTORE_FOLDER = '.restore-';
/** The directory that keeps what a restore has replaced. */
export const ASIDE = 'aside';

/** The functions of `node:fs` that are used here. */
export interface DirectoryMaker {
  statSync(path: string, options: { throwIfNoEntry: false }): { isDirectory(): boolean } | undefined;
  mkdirSync(path: string, options: { mode: number }): unknown;
}

/**
 * Creates a directory and its missing parents, for this user alone. Throws the error of the system. One directory after the other: Node's
 * own recursive mkdir never returns below one that accepts no entries, such as /proc, and reports a read-only file system as ENOENT.
 */
export function createDirectories(path: string, fs: DirectoryMaker): void {
  const found = fs.statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  const above = path.slice(0, Math.max(0, path.lastIndexOf('/')));
  if (found === undefined && above !== '') createDirectories(above, fs);
  try {
    fs.mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it in between.
    if (!fs.statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
