import { expect, test } from 'vitest';
import { sizeOf } from '../../../src/core/input/size.ts';
import { inPages } from '../../../src/flow/pages.ts';
import type { UsageRow } from '../../../src/ports/store/usage.ts';
import { added, claimTask } from './task-world.ts';
import { ANN, asking, begun, codeOf, enqueue, newConversation, receipt, update, usage, type World } from './world.ts';

const MIB = 1024 * 1024;
const LARGEST = 8 * MIB;
/** Some fit into a page together, of some only one fits, and one is larger than any page. */
const SIZES = [1, 10, 5 * MIB, 5 * MIB, 5 * MIB, 9 * MIB, 1, 1];

/** A page of large values is short, but has at least one value. Only an empty page is the end. */
export function pages(world: World): void {
  test('of events', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    for (const text of texts()) await holder.write(update(turn.id, text));
    const { lastSeq = 0 } = (await store.findConversation(ANN, conversation)) ?? {};
    const read = (after = 0) => store.events(ANN, conversation, { after, limit: 100 });
    expect(await walked(read, ({ seq }) => seq)).toEqual(numbers(1, lastSeq));
    const ofTurn = (after = 0) => store.turnEvents(ANN, turn.id, { after, limit: 100 });
    const first = (await store.turnEvents(ANN, turn.id, { limit: 1 }))[0]?.seq ?? 0;
    expect(await walked(ofTurn, ({ seq }) => seq)).toEqual(numbers(first, lastSeq));
  });

  test('of events and turns backwards, from any of them', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    for (const text of texts()) await holder.write(update(turn.id, text));
    for (const text of texts()) await enqueue(store, conversation, { prompt: [{ type: 'text', text }] });
    const { lastSeq = 0 } = (await store.findConversation(ANN, conversation)) ?? {};
    const end = Number.MAX_SAFE_INTEGER;
    const back = (before = end) => store.eventsBefore(ANN, conversation, { before, limit: 100 });
    expect(await walkedBack(back, ({ seq }) => seq)).toEqual(numbers(1, lastSeq));
    const own = (await store.turnEvents(ANN, turn.id, { limit: 99 })).map(({ seq }) => seq);
    const ofTurn = (before = end) => store.eventsBefore(ANN, conversation, { before, limit: 100, turn: turn.n });
    expect((await walkedBack(ofTurn, ({ seq }) => seq)).slice(0, own.length)).toEqual(own);
    const turnsBack = (before = end) => store.turns(ANN, conversation, { before, limit: 100 });
    expect(await walkedBack(turnsBack, ({ n }) => n)).toEqual(numbers(1, 1 + SIZES.length));
    const two = await store.eventsBefore(ANN, conversation, { before: 4, limit: 2 });
    expect(two.map(({ seq }) => seq)).toEqual([2, 3]);
    expect(await codeOf(store.eventsBefore(ANN, conversation, { before: end, limit: 1, turn: 99 }))).toBe('not_found');
    expect(await codeOf(store.eventsBefore(ANN, 'none', { before: end, limit: 1 }))).toBe('not_found');
  });

  test('of events, as small as the reader wants', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    for (let i = 0; i < 6; i += 1) await holder.write(update(turn.id, 'x'.repeat(1_000)));
    const all = await store.events(ANN, conversation, { after: 0, limit: 100 });
    const small = await store.events(ANN, conversation, { after: all.length - 6, limit: 100, bytes: 2_000 });
    expect(small.map(({ seq }) => seq)).toEqual([all.length - 5, all.length - 4]);
    const one = await store.events(ANN, conversation, { after: all.length - 6, limit: 100, bytes: 1 });
    expect(one).toHaveLength(1);
    // A follower takes a page that is neither long nor large for the last one.
    for (let bytes = 1; bytes < 8_000; bytes += 97) {
      const page = await store.events(ANN, conversation, { after: 0, limit: all.length + 1, bytes });
      expect(page.length === all.length || sizeOf(page) >= bytes).toBe(true);
    }
  });

  test('of questions', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const asked = texts().map((text) => asking(turn.id, { text }));
    for (const write of asked) await holder.write(write);
    const ids = asked.map(({ permission }) => permission.id);
    for (const filter of [{}, { open: true }, { conversation }]) {
      const read = (after?: string) => store.permissions(ANN, filter, { ...(after && { after }) });
      expect(await walked(read, ({ id }) => id)).toEqual(ids);
    }
  });

  test('of questions, by number and after any of them', async () => {
    const { store } = world;
    const [a, b] = [await begun(store), await begun(store)];
    const ids: string[] = [];
    for (let i = 0; i < 3; i += 1) {
      for (const { turn, holder } of [a, b]) {
        const write = asking(turn.id);
        await holder.write(write);
        ids.push(write.permission.id);
      }
    }
    await store.answer(ANN, ids[2] as string, 'yes', 'x');
    const of = async (...args: Parameters<typeof store.permissions> extends [string, ...infer R] ? R : never) =>
      (await store.permissions(ANN, ...args)).map(({ id }) => ids.indexOf(id));
    expect(await of({}, { limit: 2 })).toEqual([0, 1]);
    expect(await of({}, { limit: 2, after: ids[1] as string })).toEqual([2, 3]);
    expect(await of({ conversation: a.conversation }, { limit: 2 })).toEqual([0, 2]);
    expect(await of({ conversation: a.conversation, open: true }, { limit: 2 })).toEqual([0, 4]);
    expect(await of({ open: false }, { limit: 2 })).toEqual([2]);
    expect(await of({ conversation: a.conversation, turns: { from: 1, to: 1 } }, { after: ids[0] as string })).toEqual([
      2, 4,
    ]);
    expect(await of({ conversation: a.conversation, turns: { from: 1, to: 9 }, open: false })).toEqual([2]);
    expect(await of({ conversation: a.conversation, turns: { from: 2, to: 9 } })).toEqual([]);
    expect(await of({}, { after: ids[5] as string })).toEqual([]);
    expect(await codeOf(store.permissions(ANN, {}, { after: 'none' }))).toBe('not_found');
    expect(await codeOf(store.permissions('bob', {}, { after: ids[0] as string }))).toBe('not_found');
  });

  test('of conversations', async () => {
    const { store, site } = world;
    const ids: string[] = [];
    for (const title of texts()) {
      ids.unshift(await newConversation(store, { title }));
      site.pass(1);
    }
    const read = (last?: { updatedAt: number; id: string }) =>
      store.listConversations(ANN, { limit: 100, ...(last && { before: last }) });
    expect((await walked(read, (conversation) => conversation)).map(({ id }) => id)).toEqual(ids);
  });

  test('of usage, by day and agent and after any row', async () => {
    const { store, site } = world;
    const { holder } = await begun(store);
    for (const [i, agent] of ['b', 'a', 'c', 'b', 'a', 'c'].entries()) {
      if (i === 3) site.jump(86_400_000);
      const spent = receipt({ turn: i + 1, agent, usage: usage(1) });
      await holder.write({ write: 'receipt', receipt: spent, turn: null, session: null });
    }
    const all = await store.usage(ANN);
    expect(all.map(({ agent }) => agent)).toEqual(['a', 'b', 'c', 'a', 'b', 'c']);
    for (const limit of [1, 2, 4]) {
      const read = (before?: UsageRow) => store.usage(ANN, { limit, ...(before && { before }) });
      expect(await Array.fromAsync(inPages(read))).toEqual(all);
      expect(await read()).toHaveLength(limit);
    }
    const [, second, third, fourth] = all as [UsageRow, UsageRow, UsageRow, UsageRow];
    expect(await store.usage(ANN, { since: second.day, before: second })).toEqual([third]);
    // To continue after a row that does not exist is possible. Rows of another owner are not read.
    expect(await store.usage(ANN, { limit: 1, before: { day: third.day, agent: 'd' } })).toEqual([fourth]);
    expect(await store.usage('bob', { before: second })).toEqual([]);
  });

  test('of tasks and of their events', async () => {
    const { store } = world;
    const ids: string[] = [];
    for (const goal of texts()) ids.unshift((await added(store, { goal }))[0].id);
    const read = (before?: string) => store.tasks.list(ANN, {}, { limit: 100, ...(before && { before }) });
    expect(await walked(read, ({ id }) => id)).toEqual(ids);
    const events = (after = 0) => store.tasks.events(ANN, { after, limit: 100 });
    expect(await walked(events, ({ seq }) => seq)).toEqual(numbers(1, ids.length));
    await claimTask(store);
    const oldest = { task: ids.at(-1) as string, limit: 100, bytes: 1 };
    expect(await store.tasks.events(ANN, { after: 0, ...oldest })).toHaveLength(1);
  });
}

function texts(): string[] {
  return SIZES.map((size) => 'x'.repeat(size));
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

/** Reads all pages and checks their sizes. Returns the names of all values, in order. */
async function walked<T, N>(read: (after?: N) => Promise<T[]>, name: (value: T) => N): Promise<N[]> {
  const found: T[] = [];
  let count = 0;
  for (let after: N | undefined; ; after = name(found.at(-1) as T)) {
    const page = await read(after);
    if (page.length === 0) break;
    expect(JSON.stringify(page.slice(0, -1)).length).toBeLessThan(LARGEST);
    found.push(...page);
    count += 1;
  }
  expect(count).toBeGreaterThan(2);
  return found.map(name);
}

/** The same backwards: each page is in rising order, and comes before the page that was read last. */
async function walkedBack<T>(read: (before?: number) => Promise<T[]>, number: (value: T) => number): Promise<number[]> {
  const found: T[] = [];
  let count = 0;
  for (let before: number | undefined; ; before = number(found[0] as T)) {
    const page = await read(before);
    if (page.length === 0) break;
    expect(JSON.stringify(page.slice(1)).length).toBeLessThan(LARGEST);
    found.unshift(...page);
    count += 1;
  }
  expect(count).toBeGreaterThan(2);
  return found.map(number);
}
