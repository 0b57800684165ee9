import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';

test('every table has a column for the owner of a row', async () => {
  const file = join(temporaryFolder(), 'store.db');
  await openAt(file);
  const db = new DatabaseSync(file, { readOnly: true });
  const tables = db
    .prepare(
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'words%' AND name NOT LIKE 'titles%'
        AND name NOT LIKE 'sqlite_%'`,
    )
    .all();
  expect(tables.length).toBeGreaterThan(10);
  const without = tables.filter(({ name }) => {
    const columns = db.prepare(`PRAGMA table_info("${name}")`).all();
    return !columns.some((column) => column.name === 'owner' && column.notnull === 1);
  });
  expect(without).toEqual([]);
  db.close();
});
