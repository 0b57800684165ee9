import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DamagedRows } from '../../../src/core/errors.ts';
import type { Reason } from '../../../src/core/health.ts';
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts';
import { CLOCK, openAt, temporaryFolder } from '../../contracts/sqlite-folder.ts';
import { added, claimTask, taskClaimRequest } from '../../contracts/store/task-world.ts';
import {
  ANN,
  begun,
  claim,
  claimRequest,
  codeOf,
  ending,
  enqueue,
  newConversation,
  ONE,
  prompt,
  runTurn,
  sending,
} from '../../contracts/store/world.ts';
import { damagePages } from './damaged-page.ts';

const long = (word: string) => `${word} `.repeat(900);
const goal = (word: string) => `${word} `.repeat(600);

/** The id of the damaged conversation or task, from the error of a claim. Null: no error. */
async function damagedIn(verb: Promise<unknown>): Promise<string | null> {
  return verb.then(
    () => null,
    (error: unknown) => (error instanceof DamagedRows ? error.id : Promise.reject(error)),
  );
}

test('a claim names the conversation whose turn is damaged; without it, the next one is claimed', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const first = await openAt(file);
  const ids: string[] = [];
  for (const word of ['one', 'two', 'three']) {
    const id = await newConversation(first);
    await enqueue(first, id, { prompt: prompt(long(word)) });
    ids.push(id);
  }
  await first.close();
  damagePages(file, 'turns', 'one one');
  const store = await openAt(file);
  const bad = ids[0] as string;
  expect(await damagedIn(store.next(claimRequest(), ONE))).toBe(bad);
  expect(await damagedIn(store.claim(claimRequest()))).toBe(bad);
  expect((await store.next(claimRequest({ held: [bad] }), ONE))[0]?.conversation).toBe(ids[1]);
  // Three claims share a transaction: damage to one must not fail the others.
  const both = ids.slice(1).map((conversation) => claim(store, { conversation }));
  const [refused, ...claims] = await Promise.all([codeOf(store.claim(claimRequest({ conversation: bad }))), ...both]);
  expect(refused).toBe('storage_damaged');
  expect(claims.map(({ fence }) => fence.conversation)).toEqual(ids.slice(1));
});

test('a lease whose row is damaged is lost, and the others are renewed', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const first = await openAt(file);
  const { holder: bad } = await begun(first);
  // A page of the table has about forty leases.
  for (let n = 0; n < 100; n += 1) await newConversation(first);
  const { holder: good } = await begun(first);
  await first.close();
  damagePages(file, 'leases', Buffer.from(await chainOf(file, bad.fence.conversation), 'hex'));
  const store = await openAt(file);
  expect(await store.renew([bad.fence, good.fence], 60_000)).toEqual([bad.fence]);
});

async function chainOf(file: string, conversation: string): Promise<string> {
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(file, { readOnly: true });
  const sql = 'SELECT hex(chain) AS chain FROM leases l JOIN conversations c ON c.no = l.conv WHERE c.id = ?';
  const { chain } = db.prepare(sql).get(conversation) as { chain: string };
  db.close();
  return chain;
}

test('a claim names the task that is damaged; set aside, it is neither read nor counted, and the next one is claimed', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const first = await openAt(file);
  const tasks = await added(first, { goal: goal('one') }, { goal: goal('two') }, { goal: goal('three') });
  await first.close();
  damagePages(file, 'tasks', 'one one');
  const store = await openAt(file);
  expect(await damagedIn(store.tasks.claim(taskClaimRequest()))).toBe(tasks[0].id);
  const aside = [tasks[0].id];
  expect((await claimTask(store, { aside, limit: 1 })).task.id).toBe(tasks[1].id);
  expect(await store.tasks.claim(taskClaimRequest({ aside, limit: 1 }))).toBeNull();
});

test('after a read failed on a damaged page, the next read works', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const first = await openAt(file);
  const [bad, good] = [await newConversation(first), await newConversation(first)];
  for (const [id, word] of [
    [bad, 'one'],
    [good, 'two'],
    [good, 'three'],
  ] as const) {
    await enqueue(first, id, { prompt: prompt(long(word)) });
  }
  await first.close();
  damagePages(file, 'turns', 'one one');
  const store = await openAt(file);
  expect(await codeOf(store.turns(ANN, bad, { after: 0, limit: 9 }))).toBe('storage_damaged');
  expect(await store.turns(ANN, good, { after: 0, limit: 9 })).toHaveLength(2);
});

test('an inspection names what is damaged, also if SQLite can read it and only its JSON is broken', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const first = await openAt(file);
  const [bad, good] = [await newConversation(first, { key: 'bad' }), await newConversation(first, { key: 'good' })];
  for (const id of [bad, good]) await enqueue(first, id, { prompt: prompt('hello') });
  expect(await first.inspect()).toEqual({ faults: [], damaged: [] });
  await first.close();
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(file);
  db.prepare("UPDATE turns SET prompt = '[{' WHERE conv = (SELECT no FROM conversations WHERE id = ?)").run(bad);
  db.close();
  const store = await openAt(file);
  expect(await codeOf(store.turns(ANN, bad, { after: 0, limit: 9 }))).toBe('storage_damaged');
  expect(await store.inspect()).toEqual({
    faults: ['a row of turns is not JSON'],
    damaged: [{ owner: ANN, id: bad, key: 'bad' }],
  });
});

test('a search leaves out damaged turns and reports them, and a search that fails is reported as well', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const reasons: (string | undefined)[] = [];
  const health = { report: (_: string, reason: Reason | null) => void reasons.push(reason?.code), reasons: () => [] };
  const open = () => openSqliteStore({ file, clock: CLOCK, boot: 'boot-1', health });
  const first = await open();
  for (const word of ['bad', 'good']) {
    const { holder, turn } = await begun(first);
    await holder.write(sending(turn.id), ending(turn));
    await runTurn(first, holder, { prompt: prompt(`${word} ${long('amber')}`) });
  }
  await first.close();
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(file);
  db.exec("UPDATE turns SET prompt = '[{' WHERE prompt LIKE '%bad%'");
  db.close();
  const second = await open();
  expect(await second.search(ANN, 'amber', 9)).toMatchObject([{ snippet: expect.stringMatching(/^good/) }]);
  expect(reasons).toContain('storage_damaged');
  await second.close();
  damagePages(file, 'turns', 'good');
  reasons.length = 0;
  const third = await open();
  expect(await codeOf(third.search(ANN, 'amber', 9))).toBe('storage_damaged');
  expect(reasons).toContain('storage_damaged');
  await third.close();
});
