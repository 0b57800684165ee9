import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { CLOCK, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import {
  ANN,
  allEvents,
  begun,
  codeOf,
  enqueue,
  fresh,
  newConversation,
  prompt,
  update,
} from '../../../../test/contracts/store/world.ts';
import type { Clock } from '../../../ports/clock.ts';
import { storeOn } from '../store.ts';
import { openDatabase } from './open.ts';

async function opened(busyMs = 10_000) {
  const file = join(temporaryFolder(), 'store.db');
  const clock = new TestClock();
  const db = await openDatabase({ file, boot: 'boot-1', clock, busyMs });
  const { store, queue } = storeOn(db, { file, clock, busyMs, boot: 'boot-1' });
  onTestFinished(() => store.close());
  return { store, queue, file, db, clock };
}

/** Real time, until a test sets how much of it passes with every look. */
class TestClock implements Clock {
  #step: number | null = null;
  #time = 0;

  now(): number {
    return CLOCK.now();
  }

  monotonic(): number {
    if (this.#step === null) return CLOCK.monotonic();
    this.#time += this.#step;
    return this.#time;
  }

  /** With 0, a batch takes no time and is not split, however busy the machine is. */
  step(ms: number): void {
    this.#time = CLOCK.monotonic();
    this.#step = ms;
  }
}

/** Holds the lock as another process would. */
function lock(file: string): () => void {
  const other = new DatabaseSync(file);
  other.exec('BEGIN IMMEDIATE');
  return () => {
    other.exec('ROLLBACK');
    other.close();
  };
}

test('verbs of the same moment share one commit', async () => {
  const { store, queue, clock } = await opened();
  const ids = await Promise.all(Array.from({ length: 10 }, () => newConversation(store)));
  const before = queue.commits;
  clock.step(0);
  const turns = await Promise.all(ids.flatMap((id) => Array.from({ length: 10 }, () => enqueue(store, id))));
  expect(turns).toHaveLength(100);
  expect(queue.commits - before).toBe(1);
});

test('verbs that run one after the other have separate commits', async () => {
  const { store, queue } = await opened();
  const id = await newConversation(store);
  const before = queue.commits;
  for (let i = 0; i < 5; i += 1) await enqueue(store, id);
  expect(queue.commits - before).toBe(5);
});

test('a turn does not wait for verbs to collect, unless other conversations write as well', async () => {
  const { queue, clock } = await opened();
  clock.step(0); // every commit is a recent one
  const writes = (conversation: string, turnOf?: string) => queue.write((tx) => tx.moved(conversation, null), turnOf);
  const waits = async (turnOf?: string) => {
    let isOver = false;
    setImmediate(() => {
      isOver = true;
    });
    await writes('a', turnOf);
    return isOver;
  };
  await writes('a');
  expect([await waits(), await waits('a'), await waits('a')]).toEqual([true, false, false]);
  await writes('b');
  expect([await waits('a'), await waits('b')]).toEqual([true, true]);
});

test('consecutive writes of a turn share one commit, also when it awaits other promises in between', async () => {
  const { queue, clock } = await opened();
  clock.step(0); // every commit is a recent one
  const writes = () => queue.write((tx) => tx.moved('a', null), 'a');
  await writes();
  const before = queue.commits;
  const first = writes();
  for (let i = 0; i < 20; i += 1) await null;
  await Promise.all([first, writes()]);
  expect(queue.commits - before).toBe(1);
});

test('a refused verb does not affect the other verbs of its commit', async () => {
  const { store, queue, clock } = await opened();
  const id = await newConversation(store);
  const before = queue.commits;
  clock.step(0);
  const codes = await Promise.all(
    [enqueue(store, id), enqueue(store, fresh('nothing')), enqueue(store, id)].map(codeOf),
  );
  expect(codes).toEqual([null, 'not_found', null]);
  expect(queue.commits - before).toBe(1);
  expect((await store.turns(ANN, id, { after: 0, limit: 9 })).map(({ n }) => n)).toEqual([1, 2]);
});

test('very many verbs are split into several commits, so that other work continues', async () => {
  const { store, queue, clock } = await opened();
  const { turn, fence } = await begun(store);
  const before = queue.commits;
  // Every reading of the clock, and so every verb, takes two milliseconds: a batch has time for five of them.
  clock.step(2);
  const all = Promise.all(Array.from({ length: 40 }, (_, i) => store.commit(fence, 1 + i, [update(turn.id, 'x')])));
  let turns = 0;
  let running = true;
  const watch = (async () => {
    for (; running; turns += 1) await new Promise(setImmediate);
  })();
  await all;
  running = false;
  await watch;
  expect(queue.commits - before).toBe(8);
  expect(turns).toBeGreaterThanOrEqual(queue.commits - before);
});

test('the event loop is not blocked while another process holds the lock, and all waiting verbs share one commit', async () => {
  const { store, queue, file, clock } = await opened(600_000);
  const id = await newConversation(store);
  const unlock = lock(file);
  const before = queue.commits;
  const waiting = [enqueue(store, id)];
  for (let ticks = 0; ticks < 50; ticks += 1) {
    if (ticks % 10 === 0) waiting.push(enqueue(store, id));
    expect((await store.turns(ANN, id, { after: 0, limit: 99 })).length).toBe(0);
    await sleep(5);
  }
  clock.step(0);
  unlock();
  const turns = await Promise.all(waiting);
  expect(turns.map(({ n }) => n)).toEqual(turns.map((_, index) => index + 1));
  expect(queue.commits - before).toBe(1);
});

test('a lock that is held too long fails all waiting verbs with storage_busy, and work continues when it is free', async () => {
  const { store, file } = await opened(150);
  const id = await newConversation(store);
  const unlock = lock(file);
  expect(await Promise.all([enqueue(store, id), enqueue(store, id)].map(codeOf))).toEqual([
    'storage_busy',
    'storage_busy',
  ]);
  unlock();
  expect((await enqueue(store, id)).n).toBe(1);
});

test('on a full disk all verbs of a commit are refused, reading works, and writing works again when there is space', async () => {
  const { store, db, clock } = await opened();
  const id = await newConversation(store);
  const pages = db.one<{ page_count: number }>('PRAGMA page_count')?.page_count ?? 0;
  db.script(`PRAGMA max_page_count = ${pages + 4}`);
  const big = { prompt: prompt('x'.repeat(100_000)) };
  clock.step(0);
  const codes = await Promise.all([enqueue(store, id), enqueue(store, id, big)].map(codeOf));
  expect(codes).toEqual(['storage_full', 'storage_full']);
  expect(await store.turns(ANN, id, { after: 0, limit: 9 })).toEqual([]);
  db.script('PRAGMA max_page_count = 1000000');
  expect((await enqueue(store, id, big)).n).toBe(1);
  expect((await store.verify(ANN, id)).broken).toBeNull();
  expect((await allEvents(store, id)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
});

test('an unexpected error in one verb is thrown unchanged to its caller, and to no other', async () => {
  const { store, queue } = await opened();
  const id = await newConversation(store);
  const bug = queue.write(() => {
    throw new TypeError('not thought of');
  });
  const turn = enqueue(store, id);
  await expect(bug).rejects.toThrow(TypeError);
  expect((await turn).n).toBe(1);
});
