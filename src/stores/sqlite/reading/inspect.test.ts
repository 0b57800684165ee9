import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { writeOlder } from '../../../../test/contracts/older-database.ts';
import { openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { begun, codeOf } from '../../../../test/contracts/store/world.ts';
import { Database } from '../file/database.ts';
import { MIGRATIONS } from '../migrations/list.ts';
import { inspect } from './inspect.ts';

const COLUMNS = `
  SELECT t.name AS "table", c.name AS "column" FROM sqlite_schema t JOIN pragma_table_info(t.name) c
  WHERE t.type = 'table' AND t.name NOT LIKE 'words%' AND c.type = 'TEXT'`;

test('a value that is not JSON is found in every column that holds JSON', async () => {
  const file = join(temporaryFolder(), 'store.db');
  writeOlder(file, MIGRATIONS.length - 1);
  await (await openAt(file)).close();
  const db = new Database(file);
  onTestFinished(() => db.close());
  expect(inspect(db)).toEqual({ faults: [], damaged: [] });
  const columns = db.all<{ table: string; column: string }>(COLUMNS).filter(({ table, column }) => {
    const json = `sum(${column} GLOB '[[{]*' AND json_valid(${column}))`;
    const sql = `SELECT count(*) AS n, ${json} AS json FROM ${table} WHERE ${column} IS NOT NULL`;
    const found = db.one<{ n: number; json: number }>(sql);
    return found !== undefined && found.n > 0 && found.n === found.json;
  });
  expect(columns.length).toBeGreaterThan(12);
  const unnoticed = columns.filter(({ table, column }) => {
    db.script(`BEGIN; UPDATE ${table} SET ${column} = '{broken' WHERE ${column} IS NOT NULL`);
    const { faults } = inspect(db);
    db.script('ROLLBACK');
    return !faults.includes(`a row of ${table} is not JSON`);
  });
  expect(unnoticed).toEqual([]);
});

test('a receipt that is not JSON is reported as damage, whether all receipts are read or only this one', async () => {
  const file = join(temporaryFolder(), 'store.db');
  writeOlder(file, MIGRATIONS.length - 1);
  const store = await openAt(file);
  const db = new DatabaseSync(file);
  const found = db
    .prepare('SELECT c.owner, c.id, r.turn FROM receipts r JOIN conversations c ON c.no = r.conv WHERE r.warm = 0')
    .get();
  const { owner, id, turn } = found as { owner: string; id: string; turn: number };
  db.exec("UPDATE receipts SET body = '{broken'");
  db.close();
  expect(await codeOf(store.receipts(owner, id))).toBe('storage_damaged');
  expect(await codeOf(store.receipts(owner, id, { turn }))).toBe('storage_damaged');
});

test('an unreadable text that was sent to a session is found, with its conversation', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const store = await openAt(file);
  const { conversation, turn, holder } = await begun(store);
  const told = [{ as: 'transcript', text: 'x', sha256: 'x' }] as const;
  await holder.write({ write: 'send', turn: turn.id, sent: { ...SENT, told: 'x' }, told });
  await store.close();
  const db = new Database(file);
  onTestFinished(() => db.close());
  expect(inspect(db)).toEqual({ faults: [], damaged: [] });
  db.script("UPDATE told SET body = x'28b52ffd00'");
  expect(inspect(db)).toMatchObject({ faults: ['a row of told is not JSON'], damaged: [{ id: conversation }] });
});

const SENT = {
  attempt: 1,
  prompt: null,
  session: null,
  position: null,
  rung: 'new',
  delivered: null,
  process: null,
  at: 1,
} as const;
