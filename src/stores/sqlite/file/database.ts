// The one file of the store that knows Node's SQLite module: a newer Node renames its class.
import { statSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Loss } from '../../../core/loss.ts';

/** How long SQLite itself may wait for a lock, blocking this process; longer waits are asynchronous (`whileBusy`). */
const LOCK_WAIT_MS = 2;

const CONTENT = 'SELECT body FROM contents WHERE owner = ? AND hash = ?';

/** A statement that changes rows. */
const WRITES = /^\s*(?:--.*\s*)*(?:INSERT|UPDATE|DELETE|REPLACE)\b/;

interface Prepared {
  readonly statement: StatementSync;
  readonly writes: boolean;
  /** A row with every column, to be copied: an object that grows column by column takes several times as long. */
  empty: Readonly<Record<string, unknown>>;
  columns: readonly string[];
}

/** How a connection is opened: `alone`: no other process may have the database open, or the first access is refused as busy. */
export interface ConnectOptions {
  readonly onlyReads?: boolean;
  readonly alone?: boolean;
}

/** One connection and its statements, each prepared once. */
export class Database {
  readonly #file: string;
  /** A temporary copy of an older database, to look at. It is never written to. */
  readonly isCopy: boolean;
  readonly #statements = new Map<string, Prepared>();
  #connection: DatabaseSync;
  #onlyReads: boolean;
  #unwritable: boolean;
  /** How many rows the statements have changed so far, also those that were undone again. */
  changes = 0;
  /** How far the time of the store is ahead of the monotonic clock of this boot (`store-clock.ts`). */
  ahead = 0;
  /** What is missing and could not be recorded, because the database can only be read (`losses.ts`); null: nothing. */
  noticedLoss: Loss | null = null;
  /** A part of the data file was missing when it was opened. */
  isCut = false;
  /** Called with what was damaged and left out. */
  onDamage: (error: unknown) => void = () => {};

  /** `unwritable`: the file or its directory cannot be written, by its permissions or because the disk is mounted read-only. */
  constructor(file: string, { isCopy = false, unwritable = false }: { isCopy?: boolean; unwritable?: boolean } = {}) {
    this.#file = file;
    this.isCopy = isCopy;
    this.#unwritable = unwritable;
    this.#onlyReads = unwritable;
    this.#connection = this.#connect();
  }

  /** It was opened on a disk that is full or cannot be written, and can only be read. */
  get onlyReads(): boolean {
    return this.#onlyReads;
  }

  get isUnwritable(): boolean {
    return this.#unwritable;
  }

  /** Another file is at its path now than the one that was opened. */
  get wasReplaced(): boolean {
    return identity(this.#file) !== OPEN.get(this);
  }

  /**
   * Opens it again. `onlyReads`: without the shared index of the log, a file for which a full disk has no space. The index is then in
   * memory, and no other process can use the database meanwhile.
   */
  reconnect({ onlyReads = false, alone = false }: ConnectOptions): void {
    this.close();
    this.#unwritable = false;
    this.#connection = this.#connect();
    this.#onlyReads = onlyReads;
    if (onlyReads || alone) this.script('PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY');
    if (onlyReads) this.script('PRAGMA query_only = ON');
  }

  /** From here on it can only be read. */
  refuseWrites(): void {
    this.script('PRAGMA query_only = ON');
    this.#onlyReads = true;
  }

  /** The first row; undefined: none. */
  one<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    const prepared = this.#prepared(sql);
    const found = prepared.statement.get(...values) as unknown as readonly unknown[] | undefined;
    if (found === undefined) return undefined;
    if (prepared.writes) this.changes += 1;
    return rowOf<Row>(prepared, found);
  }

  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    const prepared = this.#prepared(sql);
    const found = prepared.statement.all(...values) as unknown as (readonly unknown[])[];
    if (prepared.writes) this.changes += found.length;
    return found.map((one) => rowOf<Row>(prepared, one));
  }

  /** Row by row, for callers that may stop early. */
  *each<Row>(sql: string, ...values: SQLInputValue[]): Iterable<Row> {
    const prepared = this.#prepared(sql);
    try {
      const found = prepared.statement.iterate(...values) as unknown as Iterable<readonly unknown[]>;
      for (const one of found) yield rowOf<Row>(prepared, one);
    } catch (error) {
      // At its next use the statement would fail once more with the same error.
      this.#statements.delete(sql);
      throw error;
    }
  }

  run(sql: string, ...values: SQLInputValue[]): { changes: number; no: number } {
    const { statement, writes } = this.#prepared(sql);
    const { changes, lastInsertRowid } = statement.run(...values);
    // Of a statement that changes no rows, SQLite tells the number of the one before.
    if (writes) this.changes += Number(changes);
    return { changes: Number(changes), no: Number(lastInsertRowid) };
  }

  /** A long string that is stored separately; undefined: it is missing. */
  content(owner: string, hash: string): string | undefined {
    return this.one<{ body: string }>(CONTENT, owner, hash)?.body;
  }

  /** Several statements without values, not prepared. */
  script(sql: string): void {
    this.#connection.exec(sql);
  }

  /** Runs work in a write transaction. If it throws, nothing of it is stored. */
  transaction<T>(work: () => T): T {
    this.script('BEGIN IMMEDIATE');
    try {
      const value = work();
      this.script('COMMIT');
      return value;
    } catch (error) {
      if (this.inTransaction) this.script('ROLLBACK');
      throw error;
    }
  }

  get inTransaction(): boolean {
    return this.#connection.isTransaction;
  }

  /** The text of every statement used so far: a test checks the query plan of each. */
  get statements(): string[] {
    return [...this.#statements.keys()];
  }

  close(): void {
    this.#statements.clear();
    this.#connection.close();
    OPEN.delete(this);
  }

  #connect(): DatabaseSync {
    const connection = this.#unwritable ? connectToRead(this.#file) : connect(this.#file);
    OPEN.set(this, identity(this.#file));
    return connection;
  }

  #prepared(sql: string): Prepared {
    let prepared = this.#statements.get(sql);
    if (prepared === undefined) {
      const statement = this.#connection.prepare(sql);
      // The rows that Node makes itself are slow to make, and slower to copy.
      statement.setReturnArrays(true);
      prepared = { statement, writes: WRITES.test(sql), ...columnsOf(statement) };
      this.#statements.set(sql, prepared);
    }
    return prepared;
  }
}

function columnsOf(statement: StatementSync): Pick<Prepared, 'columns' | 'empty'> {
  const columns = statement.columns().map(({ name }) => name);
  return { columns, empty: Object.fromEntries(columns.map((name) => [name, null])) };
}

function rowOf<Row>(prepared: Prepared, values: readonly unknown[]): Row {
  // Another process, or a migration, has added a column to a table of which all are read.
  if (values.length !== prepared.columns.length) Object.assign(prepared, columnsOf(prepared.statement));
  const row: Record<string, unknown> = { ...prepared.empty };
  let at = 0;
  for (const name of prepared.columns) row[name] = values[at++];
  return row as Row;
}

/** The databases that this process has open, by device and inode. */
const OPEN = new Map<Database, string | null>();

/**
 * Whether this process has the file open as a database. Then it must not be opened in any other way: closing it again would give
 * up the locks of all its connections, by which other processes see that it is in use.
 */
export function isOpenHere(file: string): boolean {
  const own = identity(file);
  return own !== null && [...OPEN.values()].includes(own);
}

function identity(file: string): string | null {
  const found = statSync(file, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}

const OPTIONS = {
  timeout: LOCK_WAIT_MS,
  enableForeignKeyConstraints: true,
  enableDoubleQuotedStringLiterals: false,
  allowExtension: false,
};

/** Never makes a file: beside an empty one, SQLite deletes the log of the one that was there. */
function connect(file: string): DatabaseSync {
  const url = pathToFileURL(file);
  url.search = 'mode=rw';
  return new DatabaseSync(url, OPTIONS);
}

/**
 * For a file that cannot be written, or that must stay as it is. The log beside it is read as well: by its shared index, if there is one, because a
 * process has the file open or was killed; else by an index in memory, without locks, because nobody else can have it open. Without a log, the file
 * has everything.
 */
export function connectToRead(file: string): DatabaseSync {
  const size = (end: string) => statSync(`${file}${end}`, { throwIfNoEntry: false })?.size ?? 0;
  const isShared = size('-shm') > 0;
  const url = pathToFileURL(file);
  url.search = size('-wal') > 0 ? 'vfs=unix-none&mode=ro' : 'immutable=1';
  const connection = new DatabaseSync(isShared ? file : url, { ...OPTIONS, readOnly: true });
  if (!isShared) connection.exec('PRAGMA locking_mode = EXCLUSIVE');
  connection.exec('PRAGMA temp_store = MEMORY');
  return connection;
}
