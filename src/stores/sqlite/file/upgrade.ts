import { chmodSync, closeSync, existsSync, fsyncSync, mkdtempSync, openSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { hasCode, ThroughlineError } from '../../../core/errors.ts';
import { CURRENT_SCHEMA } from '../migrations/current.ts';
import { MIGRATIONS } from '../migrations/list.ts';
import { Database } from './database.ts';
import { whileBusy } from './faults.ts';

/*
 * A database has the schema of the version that wrote it last. A newer program upgrades it when it opens it to write:
 *
 *   current                     nothing to do
 *   older, nobody else has it   a copy is kept beside it (FILE.schema-N), then it is upgraded in one transaction
 *   older, somebody has it      refused: an older program may be writing, and would continue to write in its own way
 *   older, only to be looked at a temporary copy is upgraded and read; the database stays as it is
 *   newer                       refused, also in the middle of the life of a process (`checkStillOurs`)
 *
 * The locks of the file show whether somebody else has it, and no list: every connection holds a shared lock for as long as it is open. So an
 * older program of any kind counts, and one that was killed does not.
 */

/** Marks the file as ours ("thrl"), to tell it from another program's database. */
export const APPLICATION = 0x7468_726c;

export const CURRENT: number = MIGRATIONS.length;

const VERSION = 'PRAGMA user_version';

/** 0: it is new. */
export function schemaVersion(db: Database): number {
  return db.one<{ user_version: number }>(VERSION)?.user_version ?? 0;
}

/** Another process may have upgraded it since it was opened: then nothing more is read or written in the old way. */
export function checkStillOurs(db: Database): void {
  if (schemaVersion(db) > CURRENT) throw newerData('The database', schemaVersion(db));
}

export function newerData(what: string, version: number): ThroughlineError {
  return new ThroughlineError('storage_newer', `${what} was written by a newer version of this program.`, {
    hint: `It has schema ${version}; this version supports schemas up to ${CURRENT}. Update Throughline, and restart what uses the older version.`,
  });
}

/** Brings the schema up to date, inside a write transaction. */
export function migrate(db: Database): void {
  const version = schemaVersion(db);
  if (version === CURRENT) return;
  for (const sql of version === 0 ? [CURRENT_SCHEMA] : MIGRATIONS.slice(version)) db.script(sql);
  db.script(`PRAGMA application_id = ${APPLICATION}`);
  db.script(`PRAGMA user_version = ${CURRENT}`);
}

/** How long to wait for others that only look, or that upgrade it at this moment. */
const ALONE_MS = 2_000;

/** Upgrades a database of this older schema, alone. Throws `storage_busy` when another process has it open; then it is as it was. */
export async function upgrade(db: Database, file: string, schema: number): Promise<void> {
  try {
    await whileBusy(() => becomeAlone(db), ALONE_MS);
  } catch (error) {
    if (!hasCode(error, 'storage_busy')) throw error;
    throw inUse(file, schema, error);
  }
  try {
    const version = schemaVersion(db); // another process may have upgraded it while this one waited
    if (version < CURRENT) upgradeKeeping(db, keptCopy(db, file, version));
  } finally {
    db.reconnect({});
  }
}

/** Gives up what it holds before it throws: of two processes that wait for each other, one has to get it. */
export function becomeAlone(db: Database): void {
  try {
    db.reconnect({ alone: true });
    db.script('BEGIN IMMEDIATE; ROLLBACK');
  } catch (error) {
    db.reconnect({});
    throw error;
  }
}

/** When it fails, the database is as it was, and the copy is not needed. */
function upgradeKeeping(db: Database, copy: string): void {
  try {
    db.transaction(() => migrate(db));
  } catch (error) {
    rmSync(copy, { force: true });
    throw error;
  }
}

function inUse(file: string, version: number, cause: unknown): ThroughlineError {
  return new ThroughlineError(
    'storage_busy',
    `${file} was written by an older version of this program (schema ${version} of ${CURRENT}), and another process has it open.`,
    {
      hint: 'Stop that process, usually a server of the older version, and try again: the data is upgraded then. See docs/backup.md.',
      cause,
    },
  );
}

/** Keeps the database as it was, for going back to the older version. */
function keptCopy(db: Database, file: string, version: number): string {
  const wanted = `${file}.schema-${version}`;
  let name = wanted;
  for (let n = 2; existsSync(name); n += 1) name = `${wanted}.${n}`;
  copyWhole(db, name);
  return name;
}

/**
 * A complete copy, without the log and without free pages, readable by this user alone. It appears under its name when it is on
 * disk. By SQLite itself: opening and closing the file here would give up the locks of every connection of this process.
 */
export function copyWhole(db: Database, file: string): void {
  const draft = `${file}.draft`;
  rmSync(draft, { force: true }); // of one that was killed
  try {
    closeSync(openSync(draft, 'wx', 0o600));
    db.run('VACUUM INTO ?', draft);
    syncToDisk(draft);
    renameSync(draft, file);
    syncToDisk(dirname(file));
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

export function syncToDisk(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/**
 * A temporary copy of an older database with the current schema, to be read and then forgotten. Its file is removed at once:
 * what is open stays readable, and nothing is left over when this process is killed.
 */
export function copyToLookAt(db: Database): Database {
  const folder = mkdtempSync(join(tmpdir(), 'throughline-look-'));
  try {
    chmodSync(folder, 0o700);
    const file = join(folder, 'copy.db');
    db.run('VACUUM INTO ?', file);
    const copy = new Database(file, { isCopy: true });
    copy.script('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; BEGIN');
    migrate(copy);
    copy.script('COMMIT');
    copy.refuseWrites();
    return copy;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
