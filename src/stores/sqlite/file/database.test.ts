import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { CLOCK, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { openDatabase } from './open.ts';

test('a row has the columns of its table, also after a column was added', async () => {
  const db = await openDatabase({ file: join(temporaryFolder(), 'store.db'), boot: 'b', clock: CLOCK, busyMs: 1_000 });
  onTestFinished(() => db.close());
  db.script("CREATE TABLE notes (no INTEGER PRIMARY KEY, text TEXT); INSERT INTO notes (text) VALUES ('one')");
  const all = 'SELECT * FROM notes';
  expect([db.one(all), db.all(all), [...db.each(all)]]).toEqual([
    { no: 1, text: 'one' },
    [{ no: 1, text: 'one' }],
    [{ no: 1, text: 'one' }],
  ]);
  db.script("ALTER TABLE notes ADD COLUMN by TEXT DEFAULT 'ann'");
  expect([db.one(all), db.all(all), [...db.each(all)]]).toEqual([
    { no: 1, text: 'one', by: 'ann' },
    [{ no: 1, text: 'one', by: 'ann' }],
    [{ no: 1, text: 'one', by: 'ann' }],
  ]);
});

test('rows that a statement has changed and returns are counted', async () => {
  const db = await openDatabase({ file: join(temporaryFolder(), 'store.db'), boot: 'b', clock: CLOCK, busyMs: 1_000 });
  onTestFinished(() => db.close());
  db.script('CREATE TABLE notes (no INTEGER PRIMARY KEY, text TEXT)');
  const before = db.changes;
  expect(db.one("INSERT INTO notes (text) VALUES ('one') RETURNING no")).toEqual({ no: 1 });
  expect(db.all('UPDATE notes SET text = ? RETURNING text', 'two')).toEqual([{ text: 'two' }]);
  expect(db.one('UPDATE notes SET text = ? WHERE no = 9 RETURNING text', 'x')).toBeUndefined();
  expect(db.changes - before).toBe(2);
});
