import { closeSync, openSync } from 'node:fs';
import { ThroughlineError } from '../../../core/errors.ts';
import { isBusy } from './faults.ts';
import { type Connection, connect } from './node-sqlite.ts';

export interface HeldFile {
  release(): void;
}

/**
 * Holds a file, which one process at a time can; null: another one does. Node has no locks on files, and SQLite has: a transaction
 * that is kept open excludes every other, and the system frees it when the process ends, however that happens. Nothing is ever
 * written, so there is no journal to keep either.
 */
export function holdFile(file: string): HeldFile | null {
  let connection: Connection | null = null;
  try {
    makeForUs(file);
    connection = connect(file, 0);
    connection.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    const held = connection;
    return { release: () => held.close() };
  } catch (cause) {
    connection?.close();
    if (isBusy(cause)) return null;
    const hint = `Make its path free and writable, and start again. (${(cause as Error).message})`;
    throw new ThroughlineError('refused', `${file} is not to be had.`, { hint, cause });
  }
}

/** Before SQLite does, for whom everybody may read it. One that is there is not opened: closing it would give our own lock away. */
function makeForUs(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
