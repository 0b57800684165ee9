import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { begun } from '../../../../test/contracts/store/world.ts';

test('the row of a worker is deleted when it has released its last lease', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const store = await openAt(file);
  const [a, b] = [await begun(store), await begun(store)];
  const db = new DatabaseSync(file, { readOnly: true });
  const rows = () => db.prepare('SELECT count(*) AS n FROM workers').get()?.n;
  await store.release(a.fence);
  expect(rows()).toBe(1);
  await store.release(b.fence);
  expect(rows()).toBe(0);
  db.close();
});
