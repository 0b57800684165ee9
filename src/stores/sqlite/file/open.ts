import { accessSync, closeSync, constants, mkdirSync, openSync, readSync } from 'node:fs';
import { dirname } from 'node:path';
import { ThroughlineError } from '../../../core/errors.ts';
import { MIGRATIONS } from '../migrations/list.ts';
import { adoptBoot } from '../turns/leases.ts';
import { Database } from './database.ts';
import { diskFull, storageFault, whileBusy } from './faults.ts';

export interface OpenOptions {
  readonly file: string;
  /** This boot of this machine. */
  readonly boot: string;
  readonly monotonic: number;
  readonly busyMs: number;
}

/**
 * Opens or creates the database. Any number of processes may do so at once. A file of another program is not changed. On a full disk
 * an existing database can still be read (`onlyReads`).
 */
export async function openDatabase(options: OpenOptions): Promise<Database> {
  prepareFile(options.file);
  let db: Database | undefined;
  try {
    db = new Database(options.file);
    await makeReady(db, options);
    return db;
  } catch (error) {
    const fault = storageFault(error) ?? error;
    if (db !== undefined && isFull(fault) && (await opensForReading(db, options))) return db;
    db?.close();
    throw fault;
  }
}

/** Makes a database that can only be read writable again. Throws `storage_full` while the disk is full. */
export async function reopenForWriting(db: Database, options: OpenOptions): Promise<void> {
  try {
    db.reconnect({ onlyReads: false });
    await makeReady(db, options);
  } catch (error) {
    db.reconnect({ onlyReads: true });
    throw storageFault(error) ?? error;
  }
}

async function makeReady(db: Database, options: OpenOptions): Promise<void> {
  const { file, busyMs } = options;
  await whileBusy(() => look(db, file), busyMs);
  await whileBusy(() => configure(db), busyMs);
  await whileBusy(() => firstTransaction(db, options), busyMs);
}

/** False: it has an older schema, or there is nothing to read. */
async function opensForReading(db: Database, { file, busyMs }: OpenOptions): Promise<boolean> {
  try {
    db.reconnect({ onlyReads: true });
    await whileBusy(() => look(db, file), busyMs);
    return schemaVersion(db) === MIGRATIONS.length;
  } catch (error) {
    if (storageFault(error) !== null || error instanceof ThroughlineError) return false;
    throw error;
  }
}

function isFull(error: unknown): boolean {
  return error instanceof ThroughlineError && error.code === 'storage_full';
}

/** Reads only. If SQLite cannot read the schema, the file is damaged. */
function look(db: Database, file: string): void {
  try {
    checkVersion(db);
    // In one transaction: a process that creates the database right now must not look like another program.
    db.script('BEGIN');
    checkSchema(db, file);
  } catch (error) {
    if (error instanceof ThroughlineError || storageFault(error) !== null) throw error;
    throw new ThroughlineError('storage_damaged', `${file} is damaged.`, {
      hint: 'Restore it from a backup.',
      cause: error,
    });
  } finally {
    if (db.inTransaction) db.script('ROLLBACK');
  }
}

function firstTransaction(db: Database, { file, boot, monotonic }: OpenOptions): void {
  db.script('BEGIN IMMEDIATE');
  try {
    checkSchema(db, file);
    migrate(db);
    adoptBoot(db, boot, monotonic);
    db.script('COMMIT');
  } catch (error) {
    if (db.inTransaction) db.script('ROLLBACK');
    throw error;
  }
}

/** Marks the file as ours ("thrl"), to tell it from another program's database. */
const APPLICATION = 0x7468_726c;

/** Reads only. Throws `storage_newer`, or `storage_damaged` for another program's database. */
function checkSchema(db: Database, file: string): void {
  const version = schemaVersion(db);
  if (version > MIGRATIONS.length) {
    throw new ThroughlineError('storage_newer', `${file} was written by a newer version of this program.`, {
      hint: `It has schema ${version}; this program knows ${MIGRATIONS.length}. Update Throughline.`,
    });
  }
  const application = db.one<{ application_id: number }>('PRAGMA application_id')?.application_id;
  const empty = db.one('SELECT 1 FROM sqlite_schema LIMIT 1') === undefined;
  if (application !== APPLICATION && !(empty && version === 0)) {
    throw new ThroughlineError('storage_damaged', `${file} is the database of another program.`, {
      hint: 'Set another file; this one was not changed.',
    });
  }
}

/** Brings the schema up to date, inside a write transaction: of several processes, one does it. */
function migrate(db: Database): void {
  const version = schemaVersion(db);
  for (const sql of MIGRATIONS.slice(version)) db.script(sql);
  if (version === MIGRATIONS.length) return;
  db.script(`PRAGMA application_id = ${APPLICATION}`);
  db.script(`PRAGMA user_version = ${MIGRATIONS.length}`);
}

function schemaVersion(db: Database): number {
  return db.one<{ user_version: number }>('PRAGMA user_version')?.user_version ?? 0;
}

function configure(db: Database): void {
  db.script('PRAGMA journal_mode = WAL');
  db.script('PRAGMA synchronous = FULL');
  // Without it, fsync on macOS leaves the data in the disk's own cache.
  if (process.platform === 'darwin') db.script('PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON');
  db.script('PRAGMA foreign_keys = ON');
  db.script('PRAGMA temp_store = MEMORY');
  db.script('PRAGMA cache_size = -8192');
  // The log shrinks back to this after a burst.
  db.script('PRAGMA journal_size_limit = 67108864');
}

/** Before 3.51.3 two processes that checkpoint at once could damage the file. */
function checkVersion(db: Database): void {
  const version = db.one<{ v: string }>('SELECT sqlite_version() AS v')?.v ?? '0';
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  const number = major * 1_000_000 + minor * 1000 + patch;
  if (number >= 3_051_003) return;
  throw new ThroughlineError('storage_damaged', `SQLite ${version} can damage a database that several processes use.`, {
    hint: 'Use a Node whose SQLite is 3.51.3 or newer: Node 24.15 or later.',
  });
}

const MAGIC = 'SQLite format 3\0';

/** Creates the directory and the file, readable for this user alone. Refuses other files before SQLite opens them. */
function prepareFile(file: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    closeSync(openSync(file, 'a', 0o600));
    accessSync(dirname(file), constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOSPC' || code === 'EDQUOT') {
      throw diskFull(error);
    }
    throw new ThroughlineError('storage_readonly', `Cannot open ${file} for writing (${code}).`, {
      hint: 'Make the file and its directory writable for this user, or set another file.',
      cause: error,
    });
  }
  const start = firstBytes(file);
  if (start === '' || start === MAGIC) return;
  throw new ThroughlineError('storage_damaged', `${file} is not a database.`, {
    hint: 'Set another file; this one was not changed.',
  });
}

function firstBytes(file: string): string {
  const descriptor = openSync(file, 'r');
  try {
    const bytes = Buffer.alloc(MAGIC.length);
    return bytes.toString('latin1', 0, readSync(descriptor, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(descriptor);
  }
}
