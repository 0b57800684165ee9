import { accessSync, closeSync, constants, mkdirSync, openSync, readSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { createDirectories } from '../../../core/directories.ts';
import { hasCode, isDamage, RESTORE_HINT, ThroughlineError, writeFault } from '../../../core/errors.ts';
import { finishSwitch } from '../backup/switch.ts';
import { isCutShort } from '../loss/cut-file.ts';
import { LOG_BYTES } from '../loss/data-file.ts';
import { HighWater, type Mark, readHighWater } from '../loss/high-water.ts';
import { noticeLoss, raiseMark, recordLoss } from '../loss/losses.ts';
import { Database, isOpenHere } from './database.ts';
import { diskFull, storageFault, unlessDamaged, whileBusy } from './faults.ts';
import { adoptClock, type BootClock, readClock } from './store-clock.ts';
import { APPLICATION, CURRENT, copyToLookAt, migrate, newerData, schemaVersion, upgrade } from './upgrade.ts';

export interface OpenOptions extends BootClock {
  readonly file: string;
  readonly busyMs: number;
  /**
   * Given: an older database is not upgraded, but read from a temporary copy, and this is called with a note for people. Left out: it is
   * upgraded, unless another process has it open (`storage_busy`).
   */
  readonly looks?: (note: string) => void;
  /** Called with a note for people when the restore that a killed process left was completed. */
  readonly onNote?: (note: string) => void;
}

/**
 * Opens or creates the database. Completes a restore that was killed in the middle. Any number of processes may do so at once. A file of
 * another program is not changed. On a disk that is full or cannot be written, an existing database can still be read (`onlyReads`).
 */
export async function openDatabase(options: OpenOptions): Promise<Database> {
  const { file, onNote } = options;
  await finishSwitch(file, onNote);
  const isCut = !isOpenHere(file) && isCutShort(file);
  const db = await openOrRead(options);
  db.isCut = isCut;
  return db;
}

async function openOrRead(options: OpenOptions): Promise<Database> {
  const refusal = prepareFile(options.file);
  if (refusal !== null) return openToRead(options, refusal);
  let db: Database | undefined;
  try {
    db = new Database(options.file);
    return (await lookedAt(db, options)) ?? (await makeReady(db, options));
  } catch (error) {
    const fault = storageFault(error) ?? error;
    if (db !== undefined && hasCode(fault, 'storage_full') && (await opensForReading(db, options))) return db;
    db?.close();
    throw fault;
  }
}

/** Opens a database that cannot be written. Throws why that is so, if it cannot be read either. */
async function openToRead(options: OpenOptions, refusal: ThroughlineError): Promise<Database> {
  const mark = readHighWater(options.file);
  const db = new Database(options.file, { unwritable: true });
  try {
    const copy = await lookedAt(db, options, () => mark);
    if (copy !== null) return copy;
    if (await isReadable(db, options)) return compared(db, mark, options);
  } catch (error) {
    db.close();
    const fault = storageFault(error) ?? error;
    throw hasCode(fault, 'storage_readonly') ? refusal : fault;
  }
  db.close();
  throw refusal;
}

/** Makes a database that can only be read writable again. Throws `storage_full` while the disk is full. */
export async function reopenForWriting(db: Database, options: OpenOptions): Promise<void> {
  if (db.isCopy) throw onlyLookedAt();
  const refusal = db.isUnwritable ? unwritable(options.file) : null;
  if (refusal !== null) throw refusal;
  try {
    db.reconnect({ onlyReads: false });
    await makeReady(db, options);
  } catch (error) {
    db.reconnect({ onlyReads: true });
    throw storageFault(error) ?? error;
  }
}

async function makeReady(db: Database, options: OpenOptions): Promise<Database> {
  const { file, busyMs } = options;
  const version = await checkFirst(db, options);
  if (isOlder(version)) await upgrade(db, file, version);
  await whileBusy(() => configure(db), busyMs);
  const highWater = HighWater.open(file);
  try {
    const mustRaise = await whileBusy(() => firstTransaction(db, options, highWater), busyMs);
    db.noticedLoss = null; // it is recorded by now
    if (highWater !== null && mustRaise) await whileBusy(() => db.transaction(() => raiseMark(db, highWater)), busyMs);
  } finally {
    highWater?.close();
  }
  return db;
}

/** The database, which can only be read, with what its mark shows to be missing. */
function compared(db: Database, mark: Mark | null, { clock }: OpenOptions): Database {
  // If a damaged page keeps them from being compared, the read that meets the damage reports it.
  unlessDamaged(() => noticeLoss(db, mark, clock.now()), undefined);
  return db;
}

/**
 * Gives the version of its schema: reading it once more may meet the lock of another process that opens it. While it waited, a backup may
 * have been restored: then the file that was opened is no longer at its path.
 */
function checkFirst(db: Database, { file, busyMs }: OpenOptions): Promise<number> {
  return whileBusy(() => {
    const version = checkDatabase(db, file);
    if (!db.wasReplaced) return version;
    db.reconnect({});
    return checkDatabase(db, file);
  }, busyMs);
}

function isOlder(version: number): boolean {
  return version > 0 && version < CURRENT;
}

/** A copy, if only looking is asked for and the database is older; null: it can be used itself. */
async function lookedAt(
  db: Database,
  options: OpenOptions,
  readMark = () => readHighWater(options.file),
): Promise<Database | null> {
  const { busyMs, looks } = options;
  if (looks === undefined) return null;
  const version = await checkFirst(db, options);
  if (!isOlder(version)) return null;
  const mark = readMark();
  const copy = await whileBusy(() => compared(copyToLookAt(db), mark, options), busyMs);
  db.close();
  looks(
    `The data was written by an older version (schema ${version} of ${CURRENT}). It is shown from a temporary copy, and was not ` +
      'changed. "throughline serve", or any command that writes, upgrades it.',
  );
  return copy;
}

function onlyLookedAt(): ThroughlineError {
  return new ThroughlineError(
    'storage_readonly',
    'The data was written by an older version, and is open for reading only.',
    {
      hint: '"throughline serve", or any command that writes, upgrades it.',
    },
  );
}

/** False: it has an older schema, or there is nothing to read. */
async function opensForReading(db: Database, options: OpenOptions): Promise<boolean> {
  try {
    const mark = readHighWater(options.file);
    db.reconnect({ onlyReads: true });
    if (!(await isReadable(db, options))) return false;
    compared(db, mark, options);
    return true;
  } catch (error) {
    if (storageFault(error) !== null || error instanceof ThroughlineError) return false;
    throw error;
  }
}

/** Whether it has the current schema. */
function isReadable(db: Database, options: OpenOptions): Promise<boolean> {
  return whileBusy(() => {
    if (checkDatabase(db, options.file) !== CURRENT) return false;
    readClock(db, options);
    return true;
  }, options.busyMs);
}

/**
 * The schema of a database of ours, of this version or an older one; 0: it is empty. Reads only. If SQLite cannot read the schema, it is
 * damaged.
 */
export function checkDatabase(db: Database, file: string): number {
  try {
    checkVersion(db);
    // In one transaction: a process that creates the database right now must not look like another program.
    db.script('BEGIN');
    return checkSchema(db, file);
  } catch (error) {
    if (error instanceof ThroughlineError || storageFault(error) !== null) throw error;
    throw new ThroughlineError('storage_damaged', `${file} is damaged.`, {
      hint: RESTORE_HINT,
      cause: error,
    });
  } finally {
    if (db.inTransaction) db.script('ROLLBACK');
  }
}

/** True: the high-water mark does not agree with the database. What it shows to be missing has been recorded. */
function firstTransaction(db: Database, options: OpenOptions, highWater: HighWater | null): boolean {
  const prepare = () => {
    checkSchema(db, options.file);
    migrate(db); // a new one; of several processes, one does it
    adoptClock(db, options);
  };
  try {
    return db.transaction(() => {
      prepare();
      return recordLoss(db, highWater?.read() ?? null, options.clock.now());
    });
  } catch (error) {
    if (!isDamage(storageFault(error))) throw error;
    // A damaged page keeps them from being compared. The rest can be used; the read that meets the damage reports it.
    db.transaction(prepare);
    return false;
  }
}

/** Gives its version. Reads only. Throws `storage_newer`, or `storage_damaged` for another program's database. */
function checkSchema(db: Database, file: string): number {
  const version = schemaVersion(db);
  if (version > CURRENT) throw newerData(file, version);
  const application = db.one<{ application_id: number }>('PRAGMA application_id')?.application_id;
  const empty = db.one('SELECT 1 FROM sqlite_schema LIMIT 1') === undefined;
  if (application !== APPLICATION && !(empty && version === 0)) {
    throw new ThroughlineError('storage_damaged', `${file} is the database of another program.`, {
      hint: 'Set another file; this one was not changed.',
    });
  }
  return version;
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
  db.script(`PRAGMA journal_size_limit = ${LOG_BYTES}`);
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

/**
 * Creates the directory and the file, readable for this user alone. Refuses other files before SQLite opens them. Returns why an existing
 * database can only be read; null: it can be written.
 */
function prepareFile(file: string): ThroughlineError | null {
  if (isOpenHere(file)) return unwritable(file);
  checkNotMissing(file);
  let refusal: ThroughlineError | null = null;
  try {
    createDirectories(dirname(file), { statSync, mkdirSync });
    closeSync(openSync(file, 'a', 0o600));
    accessSync(dirname(file), constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOSPC' || code === 'EDQUOT') {
      throw diskFull(error);
    }
    refusal = notWritable(file, error);
  }
  const start = refusal === null ? firstBytes(file) : orRefuse(refusal, () => firstBytes(file));
  if (start === MAGIC || (start === '' && refusal === null)) return refusal;
  if (start === '' && refusal !== null) throw refusal;
  throw new ThroughlineError('storage_damaged', `${file} is not a database.`, {
    hint: 'Set another file; this one was not changed.',
  });
}

/** SQLite would delete a log that is beside a new file. What was committed last may be in it alone. */
function checkNotMissing(file: string): void {
  const size = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size(file) > 0 || size(`${file}-wal`) === 0) return;
  throw new ThroughlineError('storage_gone', `The data file ${file} is missing, but its log ${file}-wal is there.`, {
    hint:
      'It was deleted or moved. Put it back, or restore a backup with "throughline restore FILE". To start again without it, move the ' +
      'log away.',
  });
}

/** Without opening it: closing it again would give up the locks of this process. */
export function unwritable(file: string): ThroughlineError | null {
  try {
    accessSync(file, constants.W_OK);
    accessSync(dirname(file), constants.W_OK);
    return null;
  } catch (error) {
    return notWritable(file, error);
  }
}

function notWritable(file: string, cause: unknown): ThroughlineError {
  const hint = 'Make the file and its directory writable for this user, or set another file.';
  const message = `Cannot open ${file} for writing (${(cause as NodeJS.ErrnoException).code}).`;
  return writeFault(file, cause) ?? new ThroughlineError('storage_readonly', message, { hint, cause });
}

/** There is no file, or it cannot even be read. */
function orRefuse<T>(refusal: ThroughlineError, read: () => T): T {
  try {
    return read();
  } catch {
    throw refusal;
  }
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
