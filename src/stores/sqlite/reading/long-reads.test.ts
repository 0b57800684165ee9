import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { CLOCK, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { ANN, newTurn, record, spec } from '../../../../test/contracts/store/world.ts';
import { until } from '../../../../test/faults/harness/until.ts';
import { openSqliteStore } from '../store.ts';
import { LongReads, type LongReadsOptions } from './long-reads.ts';

/** A database with one turn that contains "hello", and queries on it. */
async function asked(options: Partial<LongReadsOptions> = {}) {
  const file = join(temporaryFolder(), 'store.db');
  const store = await openSqliteStore({ file, clock: CLOCK, boot: 'boot-1' });
  const turn = record({ n: 1, agent: 'a', prompt: [{ type: 'text', text: 'Hi' }] } as never, {
    parts: [{ type: 'text', text: 'Hello' }],
  });
  await store.importConversation(ANN, spec(), { records: [turn], sessions: [] });
  const reads = new LongReads({ file, busyMs: 1_000, ...options });
  onTestFinished(async () => {
    await reads.close();
    await store.close();
  });
  const search = (words: string, owner = ANN) => reads.ask<unknown[]>(owner, 'search', [owner, words, 9]);
  return { reads, search };
}

test('a query runs in a thread, which ends when it is idle and starts again for the next query', async () => {
  const { reads, search } = await asked({ idleMs: 1 });
  expect(reads.isThere).toBe(false);
  expect(await search('hello')).toMatchObject([{ n: 1 }]);
  await until('the thread has ended', () => !reads.isThere);
  expect(await search('hello')).toHaveLength(1);
});

test('an error of the caller is thrown unchanged, and the thread continues', async () => {
  const { search } = await asked();
  await expect(search('!')).rejects.toMatchObject({ code: 'invalid', message: 'The search has no words.' });
  expect(await search('hello')).toHaveLength(1);
});

test('a query that takes too long is refused, and the next one gets a new thread', async () => {
  const { reads, search } = await asked({ mostMs: 1 });
  const refused = { code: 'too_large', hint: expect.stringContaining('rarer words') };
  const [first, second] = [search('hello'), search('hello')];
  await expect(first).rejects.toMatchObject(refused);
  expect(reads.isThere).toBe(false);
  await expect(second).rejects.toMatchObject(refused);
});

test('an owner with too many queries at once is refused, and other owners are not', async () => {
  const { search } = await asked();
  const many = Array.from({ length: 9 }, () => search('hello'));
  expect(() => search('hello')).toThrow(expect.objectContaining({ code: 'too_many', hint: expect.any(String) }));
  expect(await search('hello', 'bob')).toEqual([]);
  expect(await Promise.all(many)).toHaveLength(9);
});

test('owners take turns', async () => {
  const { search } = await asked();
  const order: string[] = [];
  const note = (name: string) => () => void order.push(name);
  const anns = Array.from({ length: 4 }, (_, i) => search('hello').then(note(`ann ${i}`)));
  await Promise.all([...anns, search('hello', 'bob').then(note('bob'))]);
  expect(order).toEqual(['ann 0', 'ann 1', 'bob', 'ann 2', 'ann 3']);
});

test('closing refuses waiting queries', async () => {
  const { reads, search } = await asked();
  const both = Promise.allSettled([search('hello'), search('hello')]);
  await reads.close();
  expect(await both).toMatchObject([{ reason: { code: 'closed' } }, { reason: { code: 'closed' } }]);
});

test('a long page is read in a thread, and is the same as a short one', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const store = await openSqliteStore({ file, clock: CLOCK, boot: 'boot-1' });
  const { id } = (await store.ensureConversation(ANN, spec())).conversation;
  for (let i = 0; i < 3; i += 1) await store.enqueue(ANN, newTurn(id, { options: { deliverTo: 'somebody' } }));
  const threads: unknown[] = [];
  const note = (thread: unknown) => void threads.push(thread);
  process.on('worker', note);
  onTestFinished(async () => {
    process.off('worker', note);
    await store.close();
  });
  const pages: ((limit: number) => Promise<readonly unknown[]>)[] = [
    (limit) => store.listConversations(ANN, { limit }),
    (limit) => store.listSandboxes(ANN, { limit }),
    (limit) => store.eventsBefore(ANN, id, { before: 1_000, limit }),
    (limit) => store.outline(ANN, id, { after: 0, limit }),
    (limit) => store.queued(ANN, id, { after: 0, limit }),
    (limit) => store.pending(ANN, { limit }),
    (limit) => store.permissions(ANN, {}, { limit }),
    (limit) => store.recordsAfter(ANN, id, { after: 0, limit }),
    (limit) => store.recordsBefore(ANN, id, { upTo: 9, limit }),
    (limit) => store.restores(ANN, id, { after: 0, limit }),
    (limit) => store.usage(ANN, { limit }),
    (limit) => store.tasks.list(ANN, {}, { limit }),
    (limit) => store.tasks.usage(ANN, { limit }),
  ];
  const short = await Promise.all(pages.map((page) => page(1_000)));
  expect(threads).toHaveLength(0);
  const long: unknown[] = [];
  for (const page of pages) long.push(await page(1_001));
  expect(long).toEqual(short);
  expect(short.map(({ length }) => length)).toEqual([1, 0, 5, 3, 3, 3, 0, 0, 0, 0, 0, 0, 0]);
  expect(threads).toHaveLength(1);
});
