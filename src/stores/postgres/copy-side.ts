import { setTimeout as sleep } from 'node:timers/promises';
import { ThroughlineError } from '../../core/errors.ts';
import type { Chain, CopiedRow, CopiedValue, CopySide, CopySource, CopyTarget } from '../shared/copy/side.ts';
import { RECORD, type RecordRow } from '../shared/rows.ts';
import { searchedTexts, wordsOf } from '../shared/search.ts';
import { readRecord } from '../shared/verbs/reading.ts';
import { FORGET } from './conversations/erase.ts';
import { firstBroken } from './conversations/verify.ts';
import { numbered } from './plans.ts';
import { type Client, Server, Sql, STORE_NAME, type Value } from './server/connect.ts';
import { openFault, storageFault, violated } from './server/faults.ts';
import { TIME } from './server/transaction.ts';
import { LOCK, upgrade } from './server/upgrade.ts';
import { carryOut } from './steps.ts';

// A PostgreSQL database as one side of a copy between stores (`stores/shared/copy`), on one connection.

/** Only one copy into a database runs at a time. */
const COPY_LOCK = LOCK + 1;
/** The name of our connections: stores have another one. */
const NAME = 'throughline copy';
const ALONE_MS = 1_000;
const LOOK_MS = 50;

const TRY = 'SELECT pg_try_advisory_lock($1) AS held';
const UNLOCK = 'SELECT pg_advisory_unlock($1)';
const USERS = `
  SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = '${STORE_NAME}' LIMIT 1`;
const SNAPSHOT = `
  BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0`;
const COLUMNS = `
  SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
  WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`;
const RECORDS = `${RECORD} WHERE r.turn = ANY($1::bigint[])`;
const PUT_WORDS = `
  INSERT INTO words (turn, owner, lexemes) VALUES ($1, $2, array_to_tsvector($3::text[]))
  ON CONFLICT (turn) DO UPDATE SET owner = excluded.owner, lexemes = excluded.lexemes`;
const DELETE_WORDS = 'DELETE FROM words WHERE turn = ANY($1::bigint[])';
const NUMBERED = `
  SELECT table_name AS name FROM information_schema.columns
  WHERE table_schema = current_schema() AND column_name = 'no' AND is_identity = 'YES'`;
const UNFINISHED = "SELECT value FROM facts WHERE owner = '' AND name LIKE 'unfinished:%'";
const FORGET_UNFINISHED = "DELETE FROM facts WHERE owner = '' AND name LIKE 'unfinished:%'";

/** Columns that are made from others of the row. */
const OWN_COLUMNS: Readonly<Record<string, (row: CopiedRow) => CopiedRow>> = {
  conversations: ({ title }) => ({
    title_words: wordsOf(String(title))
      .map((word) => `'${word}'`)
      .join(' '),
  }),
  turns: ({ options }) => ({ new_session: JSON.parse(String(options)).newSession ?? null }),
};

/** Reads the database as it is now. */
export async function postgresSource(url: string): Promise<CopySource> {
  const { side, sql, close } = await connect(url);
  try {
    const isAlone = await isTakenAlone(sql);
    await sql.all(SNAPSHOT);
    const run = async (text: string, ...values: Value[]) => {
      await sql.all('COMMIT');
      await inTransaction(sql, async () => void (await sql.changed(numbered(text), ...values)));
    };
    return { ...side, isAlone, run };
  } catch (error) {
    await close();
    throw storageFault(error) ?? error;
  }
}

/** Makes the tables if there are none. Throws `conflict` while anybody uses the database. */
export async function postgresTarget(url: string): Promise<CopyTarget> {
  const { side, sql, close } = await connect(url);
  const isFirst = await soon(() => isLocked(sql, COPY_LOCK));
  if (!isFirst || !(await isTakenAlone(sql))) {
    await close();
    const who = isFirst ? 'Servers or commands use the target.' : 'Another copy into the target is running.';
    throw new ThroughlineError('conflict', who, { hint: 'Wait for their end, and try again. Nothing was changed.' });
  }
  return {
    ...side,
    write: (work) => inTransaction(sql, work),
    run: async (text, ...values) => void (await sql.changed(numbered(text), ...values)),
    put: (table, key, rows) => put(sql, table, key, rows),
    forgetWords: async (turns) => void (await sql.changed(DELETE_WORDS, turns)),
    isTaken: (error) => violated(error) !== null,
    begun: async () => void (await sql.all(UNLOCK, LOCK)),
    time: async () => (await sql.one<{ time: number }>(TIME))?.time ?? 0,
    finish: () => finish(sql),
  };
}

async function connect(url: string): Promise<{ side: CopySide; sql: Sql; close(): Promise<void> }> {
  const server = await Server.at(url, 1, NAME);
  let client: Client | undefined;
  const close = async () => {
    await client?.end();
    await server.pool.end();
  };
  try {
    await upgrade(server, { exact: true });
    const connected = await server.connect();
    client = connected;
    const sql = new Sql((text, values) => connected.query(text, values));
    return { side: sideOf(sql, close), sql, close };
  } catch (error) {
    await close();
    throw openFault(error);
  }
}

/** True: nobody uses the database, and whoever opens it waits for the lock. False: somebody does. */
function isTakenAlone(sql: Sql): Promise<boolean> {
  return soon(async () => {
    if (!(await isLocked(sql, LOCK))) return false;
    if ((await sql.one(USERS)) === undefined) return true;
    await sql.all(UNLOCK, LOCK);
    return false;
  });
}

async function isLocked(sql: Sql, lock: number): Promise<boolean> {
  return (await sql.one<{ held: boolean }>(TRY, lock))?.held === true;
}

/** Tries for a short time: the server notices the end of a process a moment later. */
async function soon(isSo: () => Promise<boolean>): Promise<boolean> {
  for (const end = performance.now() + ALONE_MS; ; await sleep(LOOK_MS)) {
    if (await isSo()) return true;
    if (performance.now() >= end) return false;
  }
}

function sideOf(sql: Sql, close: () => Promise<void>): CopySide {
  return {
    async all<Row>(text: string, ...values: CopiedValue[]) {
      try {
        return await sql.all<Row>(numbered(text), ...values);
      } catch (error) {
        throw storageFault(error) ?? error;
      }
    },
    async columns(table) {
      const own = Object.keys(OWN_COLUMNS[table]?.({ title: '', options: '{}' }) ?? {});
      return (await columnsOf(sql, table)).map(({ name }) => name).filter((name) => !own.includes(name));
    },
    firstBroken: ({ id, no, last }: Chain) => firstBroken(sql, id, no, last),
    [Symbol.asyncDispose]: close,
  };
}

function columnsOf(sql: Sql, table: string): Promise<{ name: string; type: string }[]> {
  return sql.all(COLUMNS, table);
}

async function inTransaction(sql: Sql, work: () => Promise<void>): Promise<void> {
  try {
    await sql.all('BEGIN');
    await work();
    await sql.all('COMMIT');
  } catch (error) {
    // If that fails, too, the first fault says why.
    await sql.all('ROLLBACK').catch(() => {});
    throw storageFault(error) ?? error;
  }
}

async function put(sql: Sql, table: string, key: readonly string[], rows: readonly CopiedRow[]): Promise<void> {
  if (rows.length === 0) return;
  const whole = rows.map((row) => ({ ...row, ...OWN_COLUMNS[table]?.(row) }));
  const columns = await columnsOf(sql, table);
  const names = columns.map(({ name }) => name);
  const others = names.filter((name) => !key.includes(name)).map((name) => `${name} = excluded.${name}`);
  await sql.changed(
    `INSERT INTO ${table} (${names.join(', ')})
     SELECT * FROM unnest(${columns.map(({ type }, index) => `$${index + 1}::${type}[]`).join(', ')})
     ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${others.join(', ')}`,
    ...names.map((name): Value => whole.map((row: CopiedRow) => row[name] ?? null)),
  );
  if (table !== 'records') return;
  const turns = rows.map(({ turn }) => turn as number);
  for (const row of await sql.all<RecordRow>(RECORDS, turns)) {
    const record = await carryOut(sql, readRecord(row));
    const words = wordsOf(searchedTexts(record).join('\n'));
    await sql.changed(PUT_WORDS, row.turn, row.owner, words);
  }
}

/** New rows get numbers after those that were copied. What was half erased or half imported in a file is erased, because here nobody ends it later. */
async function finish(sql: Sql): Promise<void> {
  for (const { name } of await sql.all<{ name: string }>(NUMBERED)) {
    await sql.all(`SELECT setval(pg_get_serial_sequence('${name}', 'no'), (SELECT max(no) FROM ${name}))`);
  }
  for (const { value } of await sql.all<{ value: string }>(UNFINISHED)) {
    for (const statement of FORGET) await sql.changed(statement, JSON.parse(value).conv);
  }
  await sql.changed(FORGET_UNFINISHED);
}
