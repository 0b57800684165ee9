import { cpSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { writeOlder } from '../../../../test/contracts/older-database.ts';
import { Child, CLOCK, openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { ANN, enqueue, newConversation } from '../../../../test/contracts/store/world.ts';
import type { Store } from '../../../ports/store.ts';
import { CURRENT } from '../file/upgrade.ts';
import { openSqliteStore } from '../store.ts';
import { HighWater } from './high-water.ts';
import { asRestored } from './losses.ts';

const newFile = () => join(temporaryFolder(), 'store.db');

/** A copy of the files while the store is open: the state after a kill right after the last commit. */
async function killed(file: string): Promise<string> {
  await new Promise(setImmediate);
  const copy = newFile();
  cpSync(dirname(file), dirname(copy), { recursive: true });
  return copy;
}

async function prompted(store: Store, id: string, turns: number): Promise<void> {
  for (let i = 0; i < turns; i += 1) await enqueue(store, id);
}

function cutLog(file: string, share: number): void {
  truncateSync(`${file}-wal`, Math.floor(statSync(`${file}-wal`).size * share));
}

/** How many turns of the conversation are left. */
const turnsOf = async (store: Store, id: string) => (await store.turns(ANN, id, { after: 0, limit: 999 })).length;

test('a log that was cut after a kill is noticed, with the conversations and what is missing of each', async () => {
  const file = newFile();
  const store = await openAt(file);
  const notes = await newConversation(store, { key: 'notes' });
  const whole = await newConversation(store, { key: 'whole' });
  await prompted(store, notes, 20);
  const lost = await newConversation(store, { key: 'lost' });
  await prompted(store, lost, 2);
  const copy = await killed(file);
  cutLog(copy, 0.7);

  const again = await openAt(copy);
  const [loss, ...more] = await again.losses();
  const left = await turnsOf(again, notes);
  expect(left).toBeLessThan(20);
  const lastSeq = async (of: string) => (await again.findConversation(ANN, of))?.lastSeq as number;
  const missingEvents = ((await store.findConversation(ANN, notes))?.lastSeq as number) - (await lastSeq(notes)) + 4;
  expect(more).toEqual([]);
  expect(loss).toEqual({
    noticedAt: expect.any(Number),
    kind: 'tail',
    events: missingEvents,
    changes: 0,
    conversations: [
      {
        conversationId: notes,
        key: 'notes',
        had: { seq: (await store.findConversation(ANN, notes))?.lastSeq, turns: 20 },
        has: { seq: await lastSeq(notes), turns: left },
      },
      { conversationId: lost, key: null, had: { seq: 4, turns: 2 }, has: null },
    ],
  });
  expect((await again.findConversation(ANN, whole))?.key).toBe('whole');
});

test('a loss stays reported after new events reuse its numbers, until somebody acknowledges it', async () => {
  const file = newFile();
  const store = await openAt(file);
  const id = await newConversation(store);
  await prompted(store, id, 10);
  const copy = await killed(file);
  cutLog(copy, 0.7);
  const first = await openAt(copy);
  await prompted(first, id, 20);
  const found = await first.losses();
  expect(found).toHaveLength(1);
  await first.close();
  const second = await openAt(copy);
  expect(await second.losses()).toEqual(found);
  await second.acknowledgeLosses();
  await second.close();
  expect(await (await openAt(copy)).losses()).toEqual([]);
});

test('an older database that is opened without an upgrade is compared as well', async () => {
  const file = newFile();
  writeOlder(file, CURRENT - 1);
  const db = new DatabaseSync(file, { readOnly: true });
  const { log } = db.prepare("SELECT value AS log FROM facts WHERE name = 'log'").get() as { log: string };
  const { last } = db.prepare('SELECT max(no) AS last FROM events').get() as { last: number };
  db.close();
  const mark = HighWater.open(file);
  mark?.reset(log, 0, { no: last + 3, conversation: 'gone', seq: 7, turns: 2 });
  mark?.close();
  const store = await openSqliteStore({ file, clock: CLOCK, boot: 'boot-1', looks: () => {} });
  onTestFinished(() => store.close());
  expect(await store.losses()).toMatchObject([
    { kind: 'tail', events: 3, conversations: [{ conversationId: 'gone', had: { seq: 7, turns: 2 }, has: null }] },
  ]);
});

test('a loss is recorded once, also if a process dies before the mark is written again', async () => {
  const file = newFile();
  const store = await openAt(file);
  const id = await newConversation(store);
  await prompted(store, id, 10);
  const copy = await killed(file);
  cutLog(copy, 0.7);
  cpSync(`${copy}.highwater`, `${copy}.old`);
  const first = await openAt(copy);
  const found = await first.losses();
  await first.close();
  cpSync(`${copy}.old`, `${copy}.highwater`);
  expect(await (await openAt(copy)).losses()).toEqual(found);
});

/** A file with a conversation, and a copy (`.old`) of it from before its three turns. */
async function withOlderCopy() {
  const file = newFile();
  const store = await openAt(file);
  const id = await newConversation(store);
  const log = await store.log();
  await store.close();
  cpSync(file, `${file}.old`);
  const later = await openAt(file);
  expect(await later.log()).toBe(log);
  await prompted(later, id, 3);
  await later.close();
  return { file, log };
}

test('an older copy of the data file that is put back is noticed, and is another log', async () => {
  const { file, log } = await withOlderCopy();
  cpSync(`${file}.old`, file);
  const back = await openAt(file);
  expect(await back.losses()).toMatchObject([
    { kind: 'tail', events: 4, conversations: [{ has: { seq: 1, turns: 0 } }] },
  ]);
  expect(await back.log()).not.toBe(log);
});

test('a lost commit without an event is noticed: the revoked key would be valid again', async () => {
  const file = newFile();
  const store = await openAt(file);
  const key = { id: 'k', name: 'k', scopes: ['read'], owners: null, hash: 'h', expiresAt: null } as const;
  await store.createKey(ANN, key as never);
  const before = await killed(file);
  await store.revokeKey(ANN, 'k');
  const after = await killed(file);
  cpSync(`${before}-wal`, `${after}-wal`);
  const again = await openAt(after);
  expect((await again.findKey('k'))?.revokedAt).toBeNull();
  expect(await again.losses()).toMatchObject([{ kind: 'tail', events: 0, changes: 1, conversations: [] }]);
});

test('a new data file in place of a missing one is reported', async () => {
  const file = newFile();
  const store = await openAt(file);
  const id = await newConversation(store);
  await prompted(store, id, 2);
  await store.close();
  rmSync(file);
  const fresh = await openAt(file);
  expect(await fresh.losses()).toMatchObject([
    { kind: 'other', events: 4, conversations: [{ conversationId: id, had: { seq: 4, turns: 2 }, has: null }] },
  ]);
});

test('restoring a backup is not reported as a loss, and starts a new log', async () => {
  const { file, log } = await withOlderCopy();
  cpSync(`${file}.old`, file);
  asRestored(file);
  const restored = await openAt(file);
  expect(await restored.losses()).toEqual([]);
  expect(await restored.log()).not.toBe(log);
});

test.each([
  ['is missing', (mark: string) => rmSync(mark)],
  ['is empty', (mark: string) => writeFileSync(mark, '')],
  ['is damaged', (mark: string) => writeFileSync(mark, Buffer.alloc(300_000, 0xaa))],
  ['was written in part', (mark: string) => truncateSync(mark, 20_000)],
])('a mark that %s raises no alarm, and is written again', async (_what, harm) => {
  const file = newFile();
  const store = await openAt(file);
  const id = await newConversation(store);
  await prompted(store, id, 5);
  await store.close();
  harm(`${file}.highwater`);
  const again = await openAt(file);
  expect(await again.losses()).toEqual([]);
  await prompted(again, id, 5);
  const copy = await killed(file);
  cutLog(copy, 0.5);
  expect(await (await openAt(copy)).losses()).toHaveLength(1);
});

test('if there are more events than fit into the mark, the oldest are overwritten and the last are reported', async () => {
  const file = newFile();
  const store = await openAt(file);
  const id = await newConversation(store);
  await Promise.all(Array.from({ length: 6_000 }, () => enqueue(store, id)));
  const before = await killed(file);
  expect(await (await openAt(before)).losses()).toEqual([]);
  const older = await killed(file);
  await prompted(store, id, 5);
  const cut = await killed(file);
  cpSync(`${older}-wal`, `${cut}-wal`);
  expect(await (await openAt(cut)).losses()).toMatchObject([
    { events: 5, conversations: [{ had: { seq: 6_007, turns: 6_005 }, has: { seq: 6_002, turns: 6_000 } }] },
  ]);
});

test('processes that write and open at the same time never raise an alarm', async () => {
  const file = newFile();
  const store = await openAt(file);
  await newConversation(store, { id: 'shared' });
  const writers = ['a', 'b'].map((name) => new Child(file, 'write', name));
  for (let i = 0; i < 40; i += 1) {
    await Promise.all(writers.map((writer) => writer.line(i)));
    const other = await openAt(file);
    expect(await other.losses()).toEqual([]);
    await other.close();
  }
  await Promise.all(writers.map((writer) => writer.done()));
});
