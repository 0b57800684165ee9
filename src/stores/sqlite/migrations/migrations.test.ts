import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { MIGRATIONS } from './list.ts';

test('sessions of before storages were known go by the name of their agent', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const old = new DatabaseSync(file, { enableForeignKeyConstraints: false });
  for (const sql of MIGRATIONS.slice(0, 3)) old.exec(sql);
  old.exec('PRAGMA application_id = 0x7468726c; PRAGMA user_version = 3');
  const insert = old.prepare(`
    INSERT INTO sessions (owner, conv, ref, id, agent, origin, watermark, dropped, state, turns, usage, opened_at, used_at,
      used_seq) VALUES ('ann', 1, ?, 'one', ?, 'new', 0, 0, 'live', 0, '{}', 0, 0, 0)`);
  for (const agent of ['a', 'b']) insert.run(`ref-${agent}`, agent);
  old.close();
  await (await openAt(file)).close();
  const db = new DatabaseSync(file);
  expect(db.prepare('SELECT agent, storage FROM sessions ORDER BY no').all()).toEqual([
    { agent: 'a', storage: 'a' },
    { agent: 'b', storage: 'b' },
  ]);
  db.close();
});
