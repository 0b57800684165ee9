import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { ThroughlineError } from '../core/errors.ts';

export interface FileLock {
  release(): void;
}

/**
 * Locks a file for this process; null: another process holds the lock. Node has no file locks, so we use a transaction of SQLite: it
 * excludes every other, and the system frees it however the process ends. Nothing is ever written, so no journal is needed.
 */
export function lockFile(file: string): FileLock | null {
  let connection: DatabaseSync | null = null;
  try {
    createPrivate(file);
    connection = new DatabaseSync(file, { timeout: 0 });
    connection.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    const held = connection;
    return { release: () => held.close() };
  } catch (cause) {
    connection?.close();
    if (isBusy(cause)) return null;
    const hint = `Remove the file that has its name, or make the directory writable, and start again. (${(cause as Error).message})`;
    throw new ThroughlineError('refused', `Cannot lock ${file}.`, { hint, cause });
  }
}

/**
 * Creates the file before SQLite does, because SQLite would make it readable for everybody. An existing file is not opened: closing it
 * would release a lock of our own.
 */
function createPrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** SQLITE_BUSY and SQLITE_LOCKED, and the two kinds of SQLITE_IOERR that concern the lock itself. */
const BUSY = [5, 6];
const BUSY_IO = [2314, 3850];

function isBusy(error: unknown): boolean {
  const { errcode = 0 } = error as { errcode?: number };
  return BUSY.includes(errcode & 0xff) || BUSY_IO.includes(errcode);
}
