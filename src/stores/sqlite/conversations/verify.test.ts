import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { ANN, begun, update } from '../../../../test/contracts/store/world.ts';
import { payloadDigest } from './chain.ts';

test('a payload can be erased, and the chain still be checked', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const store = await openAt(file);
  const { conversation, turn, holder } = await begun(store);
  const seq = await holder.write(update(turn.id, 'to be forgotten'));
  await holder.write(update(turn.id, 'more'));
  const db = new DatabaseSync(file);
  const row = db
    .prepare('SELECT no, salt, payload FROM events WHERE seq = ? AND turn IS NOT NULL')
    .get(seq) as unknown as EventRow;
  const digest = Buffer.from(payloadDigest(row.salt, row.payload), 'hex');
  const erase = db.prepare('UPDATE events SET payload = NULL, salt = NULL, digest = ? WHERE no = ?');
  erase.run(digest, row.no);
  expect(await store.verify(ANN, conversation)).toBeNull();
  expect((await store.events(ANN, conversation, { after: seq - 1, limit: 1 }))[0]).toMatchObject({
    seq,
    kind: 'turn.update',
  });
  erase.run(Buffer.alloc(32), row.no);
  expect(await store.verify(ANN, conversation)).toBe(seq);
  db.close();
});

interface EventRow {
  no: number;
  salt: Uint8Array;
  payload: string;
}
