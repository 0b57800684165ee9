import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { CLOCK, openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { ANN, begun, endingUnsent, update } from '../../../../test/contracts/store/world.ts';
import { NO_CHAIN, nextChain, payloadDigest } from '../../shared/chain.ts';
import { Database } from '../file/database.ts';
import { openDatabase } from '../file/open.ts';
import { storeOn } from '../store.ts';
import { firstBroken } from './verify.ts';

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
  expect((await store.verify(ANN, conversation)).broken).toBeNull();
  expect((await store.events(ANN, conversation, { after: seq - 1, limit: 1 }))[0]).toMatchObject({
    seq,
    kind: 'turn.update',
  });
  erase.run(Buffer.alloc(32), row.no);
  expect((await store.verify(ANN, conversation)).broken).toBe(seq);
  db.close();
});

test('a recomputed chain is valid in itself, and only a head that was kept elsewhere reveals it', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const store = await openAt(file);
  const { conversation, turn, holder } = await begun(store);
  await holder.write(update(turn.id, 'as it was'), update(turn.id, 'more'));
  const { head } = await store.verify(ANN, conversation);
  forge(file, conversation, 'as it was', 'as it never was');
  const forged = await store.verify(ANN, conversation);
  expect(forged.broken).toBeNull();
  expect(await store.verify(ANN, conversation, head)).toEqual({ ...forged, kept: false });
});

const LARGE = 1_100_000;

test('large events are verified and erased one after another, so that other work can run in between', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const db = await openDatabase({ file, boot: 'boot-1', clock: CLOCK, busyMs: 1_000 });
  const { store, queue } = storeOn(db, { file, clock: CLOCK, busyMs: 1_000, boot: 'boot-1' });
  const withEvents = async (length: number) => {
    const { conversation, turn, holder } = await begun(store);
    for (let i = 0; i < 10; i += 1) await holder.write(update(turn.id, `${i}`.repeat(length)));
    await holder.write(endingUnsent(turn));
    return conversation;
  };
  const [conversation, small] = [await withEvents(LARGE), await withEvents(1)];
  const { lastSeq = 0 } = (await store.findConversation(ANN, conversation)) ?? {};

  const read: number[] = [];
  const looks = new Database(file);
  const broken = await firstBroken(
    {
      read: async (look) => {
        const value = look(looks);
        if (Array.isArray(value)) read.push(value.reduce((sum, { payload }) => sum + payload.length, 0));
        return value;
      },
    },
    conversation,
    1,
    lastSeq,
  );
  looks.close();
  expect(broken).toBeNull();
  expect(Math.max(...read)).toBeLessThan(2 * LARGE);

  const stepsToErase = async (id: string) => {
    const before = queue.commits;
    await store.eraseConversation(ANN, id);
    return queue.commits - before;
  };
  expect((await stepsToErase(conversation)) - (await stepsToErase(small))).toBeGreaterThan(5);
  expect((await store.verify(ANN, conversation)).broken).toBeNull();
  await store.close();
});

/** What a person with write access to the database can do: change a payload and recompute every later link. */
function forge(file: string, conversation: string, before: string, after: string): void {
  const db = new DatabaseSync(file);
  const rows = db
    .prepare('SELECT e.*, t.id AS turn FROM events e LEFT JOIN turns t ON t.no = e.turn ORDER BY e.seq')
    .all() as unknown as (EventRow & { conv: number; seq: number; kind: string; turn: string | null; at: number })[];
  let chain = NO_CHAIN;
  for (const row of rows) {
    const payload = row.payload.replace(before, after);
    chain = nextChain(chain, payloadDigest(row.salt, payload), { conversation, ...row });
    db.prepare('UPDATE events SET payload = ?, chain = ? WHERE no = ?').run(payload, chain, row.no);
  }
  db.prepare('UPDATE leases SET chain = ?').run(chain);
  db.close();
}

interface EventRow {
  no: number;
  salt: Uint8Array;
  payload: string;
}
