import type { SQLInputValue } from 'node:sqlite';
import { hasCode, ThroughlineError } from '../../core/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Chain, CopiedRow, CopiedValue, CopySide, CopySource, CopyTarget } from '../shared/copy/side.ts';
import { RECORD, type RecordRow, recordOf } from '../shared/rows.ts';
import { searchedTexts } from '../shared/search.ts';
import { firstBroken } from './conversations/verify.ts';
import type { Database } from './file/database.ts';
import { isConstraint, storageFault, whileBusy } from './file/faults.ts';
import { openDatabase } from './file/open.ts';
import { storeClock } from './file/store-clock.ts';
import { becomeAlone } from './file/upgrade.ts';

// A SQLite file as one side of a copy between stores (`stores/shared/copy`).

export interface SqliteSideOptions {
  readonly file: string;
  readonly clock: Clock;
  readonly boot: string;
  /** Called with a note for people when the restore that a killed process left was completed. */
  readonly onNote?: (note: string) => void;
}

const BUSY_MS = 10_000;
/** How long to wait for processes that are about to end. */
const ALONE_MS = 1_000;

const COLUMNS = 'SELECT name FROM pragma_table_info(?)';
const RECORD_OF = `${RECORD} WHERE r.turn = ?`;
const INSERT_WORDS = 'INSERT INTO words (rowid, prompt, reply) VALUES (?, ?, ?)';
const DELETE_WORDS = 'DELETE FROM words WHERE rowid = ?';
/** Rewrites the index: it keeps no texts, and words that were deleted are in it until then. */
const REWRITE_WORDS = "INSERT INTO words (words) VALUES ('optimize')";

/** The number of an event in the whole file is not copied: PostgreSQL has none. */
const OWN_COLUMNS: Readonly<Record<string, string>> = { events: 'no' };

/** Reads the file as it is now. An older schema is upgraded first, as by every program that opens it. */
export async function sqliteSource(options: SqliteSideOptions): Promise<CopySource> {
  const db = await openDatabase({ ...options, busyMs: BUSY_MS });
  try {
    const isAlone = await isTakenAlone(db);
    db.script('BEGIN');
    const run = async (sql: string, ...values: SQLInputValue[]) => {
      db.script('COMMIT');
      db.run(sql, ...values);
    };
    return { ...sideOf(db), isAlone, run };
  } catch (error) {
    db.close();
    throw storageFault(error) ?? error;
  }
}

/** Creates the file if it does not exist. Throws `conflict` while another process has it open. */
export async function sqliteTarget(options: SqliteSideOptions): Promise<CopyTarget> {
  const db = await openDatabase({ ...options, busyMs: BUSY_MS });
  if (!(await isTakenAlone(db))) {
    db.close();
    throw new ThroughlineError('conflict', `Another process has ${options.file} open.`, {
      hint: 'Stop everything that uses it, and try again. Nothing was changed.',
    });
  }
  // Until the end, what is lost by a power failure is copied again. All references are valid again at the end of a pass.
  db.script('PRAGMA foreign_keys = OFF; PRAGMA synchronous = NORMAL');
  return {
    ...sideOf(db),
    write: (work) => inTransaction(db, work),
    run: async (sql, ...values) => void db.run(sql, ...values),
    put: async (table, key, rows) => {
      for (const row of rows) putRow(db, table, key, row);
      if (table === 'records') for (const { turn } of rows) putWords(db, turn as number);
    },
    forgetWords: async (turns) => {
      for (const turn of turns) db.run(DELETE_WORDS, turn);
    },
    isTaken: isConstraint,
    begun: async () => {},
    time: async () => storeClock(db, options.clock).monotonic(),
    finish: async () => {
      checkReferences(db, options.file);
      db.run(REWRITE_WORDS);
    },
  };
}

/** False: another process has it open, or it can only be read. */
async function isTakenAlone(db: Database): Promise<boolean> {
  if (db.onlyReads) return false;
  try {
    await whileBusy(() => becomeAlone(db), ALONE_MS);
    return true;
  } catch (error) {
    if (!hasCode(error, 'storage_busy')) throw error;
    return false;
  }
}

function sideOf(db: Database): CopySide {
  return {
    async all<Row>(sql: string, ...values: CopiedValue[]) {
      try {
        return db.all<CopiedRow>(sql, ...values).map(storable) as Row[];
      } catch (error) {
        throw storageFault(error) ?? error;
      }
    },
    columns: async (table) =>
      db.all<{ name: string }>(COLUMNS, table).flatMap(({ name }) => (name === OWN_COLUMNS[table] ? [] : [name])),
    firstBroken: ({ id, no, last }: Chain) => firstBroken({ read: async (look) => look(db) }, id, no, last),
    [Symbol.asyncDispose]: async () => db.close(),
  };
}

/** PostgreSQL keeps no NUL in a text; JSON has none. */
function storable(row: CopiedRow): CopiedRow {
  const texts = Object.entries(row).filter(([, value]) => typeof value === 'string' && value.includes('\0'));
  if (texts.length === 0) return row;
  return {
    ...row,
    ...Object.fromEntries(texts.map(([name, text]) => [name, String(text).replaceAll('\0', '\ufffd')])),
  };
}

async function inTransaction(db: Database, work: () => Promise<void>): Promise<void> {
  try {
    db.script('BEGIN IMMEDIATE');
    await work();
    db.script('COMMIT');
  } catch (error) {
    if (db.inTransaction) db.script('ROLLBACK');
    throw storageFault(error) ?? error;
  }
}

function putRow(db: Database, table: string, key: readonly string[], row: CopiedRow): void {
  const columns = Object.keys(row);
  const others = columns.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
  db.run(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
     ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${others.join(', ')}`,
    ...(Object.values(row) as SQLInputValue[]),
  );
}

function putWords(db: Database, turn: number): void {
  const row = db.one<RecordRow>(RECORD_OF, turn) as RecordRow;
  const record = recordOf(db, row);
  db.run(DELETE_WORDS, turn);
  db.run(INSERT_WORDS, turn, ...searchedTexts(record));
}

function checkReferences(db: Database, file: string): void {
  const found = db.one<{ table: string }>('PRAGMA foreign_key_check')?.table;
  if (found === undefined) return;
  throw new ThroughlineError('storage_damaged', `A row of ${found} in ${file} refers to a row that does not exist.`, {
    hint: 'The source is unchanged. Copy it to another, empty target.',
  });
}
