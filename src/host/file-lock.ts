import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { ThroughlineError } from '../core/errors.ts';

export interface FileLock {
  release(): void;
}

/**
 * Locks a file, which one process at a time can; null: another process holds the lock. Node has no file locks, and SQLite has:
 * an open transaction excludes every other, and the system frees it when the process ends, in whatever way. Nothing is ever
 * written, so there is no journal to keep either.
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
    const hint = `Remove what is in its place, or make the directory writable, and start again. (${(cause as Error).message})`;
    throw new ThroughlineError('refused', `Cannot lock ${file}.`, { hint, cause });
  }
}

/**
 * Before SQLite creates it, because SQLite would let everybody read it. An existing file is not opened: closing it would give
 * up a lock of our own.
 */
function createPrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** SQLITE_BUSY and SQLITE_LOCKED, and of IOERR the two that say that the lock itself was not given. */
const BUSY = [5, 6];
const BUSY_IO = [2314, 3850];

function isBusy(error: unknown): boolean {
  const { errcode = 0 } = error as { errcode?: number };
  return BUSY.includes(errcode & 0xff) || BUSY_IO.includes(errcode);
}
