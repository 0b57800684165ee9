import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { TurnRecord } from '../../../src/core/turn/record.ts';
import type { Turn } from '../../../src/core/turn/turn.ts';
import {
  AGENT,
  ANN,
  allEvents,
  begun,
  claim,
  codeOf,
  ending,
  enqueue,
  fresh,
  newConversation,
  opening,
  prompt,
  record,
  runTurn,
  sending,
  session,
  spec,
  usage,
  type World,
} from './world.ts';

export function copies(world: World): void {
  test('a fork has the records up to its turn, continues their numbers, and starts its own events', async () => {
    const { store } = world;
    const { conversation } = await told(world, 3);
    const forked = await store.fork(ANN, conversation, 2, spec({ key: 'fork', agent: null }));
    const records = await store.recordsAfter(ANN, conversation, { after: 0, limit: 2 });
    const hash = createHash('sha256')
      .update(records.map((each) => `${JSON.stringify(each)}\n`).join(''))
      .digest('hex');
    const parent = { conversation, n: 2, hash };
    expect(forked).toMatchObject({ key: 'fork', owner: ANN, parent, head: 2, historyCount: 2, lastSeq: 1 });
    expect(await store.recordsAfter(ANN, forked.id, { after: 0, limit: 9 })).toEqual(records);
    expect(await allEvents(store, forked.id)).toMatchObject([{ seq: 1, kind: 'conversation.forked', payload: parent }]);
    expect(await enqueue(store, forked.id)).toMatchObject({ n: 3, agent: AGENT });
    const turns = await store.turns(ANN, forked.id, { after: 0, limit: 9 });
    expect(turns.map(({ n, state }) => [n, state])).toEqual([
      [1, 'completed'],
      [2, 'completed'],
      [3, 'queued'],
    ]);
    expect(await store.countRecordsAfter(ANN, forked.id, 1)).toBe(1);
  });

  test('a fork and its source do not affect each other, and a fork has none of the source’s sessions', async () => {
    const { store } = world;
    const { conversation, holder } = await told(world, 2);
    const forked = await store.fork(ANN, conversation, 2, spec());
    expect(await store.sessions(ANN, forked.id)).toEqual([]);
    expect(await store.summary(ANN, forked.id)).toMatchObject({ contexts: 2, sessions: 0, changes: 0, open: 0 });
    await runTurn(store, holder);
    expect((await store.findConversation(ANN, forked.id))?.head).toBe(2);
    await enqueue(store, forked.id);
    expect((await claim(store, { conversation: forked.id })).turn?.n).toBe(3);
    expect((await store.findConversation(ANN, conversation))?.head).toBe(3);
  });

  test('a fork can be forked, and long content stays complete', async () => {
    const { store } = world;
    const { conversation } = await told(world, 1, 'long '.repeat(10_000));
    const first = await store.fork(ANN, conversation, 1, spec());
    const second = await store.fork(ANN, first.id, 1, spec());
    const page = { after: 0, limit: 9 };
    const original = await store.recordsAfter(ANN, conversation, page);
    expect(await store.recordsAfter(ANN, second.id, page)).toEqual(original);
    expect(second.parent?.hash).toBe(first.parent?.hash);
  });

  test('a fork has the title of its source unless it is given one', async () => {
    const { store } = world;
    const { conversation } = await told(world, 1);
    const source = await store.findConversation(ANN, conversation);
    expect(await store.fork(ANN, conversation, 1, spec())).toMatchObject({
      title: source?.title,
      titleSource: 'prompt',
    });
    expect(await store.fork(ANN, conversation, 1, spec({ title: 'New' }))).toMatchObject({
      title: 'New',
      titleSource: 'caller',
    });
  });

  test('an impossible fork is refused and creates nothing', async () => {
    const { store, site } = world;
    const { conversation } = await told(world, 1);
    await newConversation(store, { key: 'taken' });
    const before = await site.contents();
    expect(await codeOf(store.fork(ANN, conversation, 2, spec()))).toBe('invalid');
    expect(await codeOf(store.fork(ANN, conversation, -1, spec()))).toBe('invalid');
    expect(await codeOf(store.fork(ANN, conversation, 1, spec({ key: 'taken' })))).toBe('conflict');
    expect(await codeOf(store.fork(ANN, fresh('nothing'), 1, spec()))).toBe('not_found');
    expect(await site.contents()).toBe(before);
  });

  test('an import has the given records and closed sessions, and continues with the next number', async () => {
    const { store } = world;
    const records = [foreign(2, 's1'), foreign(5, 's2', 'x'.repeat(9000))];
    const sessions = [
      { id: 's1', agent: AGENT, origin: 'new', watermark: 2, parent: null },
      { id: 's2', agent: AGENT, origin: 'rotated', watermark: 5, parent: 's1' },
    ] as const;
    const made = await store.importConversation(ANN, spec({ key: 'k', title: 'Old' }), { records, sessions });
    expect(made).toMatchObject({ key: 'k', title: 'Old', head: 5, historyCount: 2, lastSeq: 1, parent: null });
    expect(await store.recordsAfter(ANN, made.id, { after: 0, limit: 9 })).toEqual(records);
    expect(await allEvents(store, made.id)).toMatchObject([{ kind: 'conversation.imported', payload: { turns: 2 } }]);
    const lineage = await store.sessions(ANN, made.id);
    expect(new Set(lineage.map(({ id, state }) => `${id} ${state}`))).toEqual(new Set(['s1 closed', 's2 closed']));
    const [s1, s2] = ['s1', 's2'].map((id) => lineage.find((each) => each.id === id));
    expect(s2?.parent).toBe(s1?.ref);
    expect(await store.summary(ANN, made.id)).toMatchObject({
      contexts: 2,
      sessions: 2,
      changes: 1,
      usage: { inputTokens: 8 },
    });
    expect(await store.usage(ANN)).toEqual([]);
    expect((await enqueue(store, made.id)).n).toBe(6);
    expect((await store.turns(ANN, made.id, { after: 0, limit: 9 })).map(({ n }) => n)).toEqual([2, 5, 6]);
  });

  test('an import is all or nothing', async () => {
    const { store, site } = world;
    await newConversation(store, { key: 'taken' });
    const before = await site.contents();
    const records = [foreign(1, 's'), foreign(2, 's')];
    expect(await codeOf(store.importConversation(ANN, spec({ key: 'taken' }), { records, sessions: [] }))).toBe(
      'conflict',
    );
    const twice = { records: [...records, foreign(2, 's')], sessions: [] };
    expect(await codeOf(store.importConversation(ANN, spec(), twice))).toBe('invalid');
    expect(await site.contents()).toBe(before);
  });

  test('imported and forked turns can be searched', async () => {
    const { store } = world;
    const made = await store.importConversation(ANN, spec(), { records: [foreign(1, 's')], sessions: [] });
    const forked = await store.fork(ANN, made.id, 1, spec());
    const hits = await store.search(ANN, 'codeword', 9);
    expect(new Set(hits.map(({ conversation }) => conversation))).toEqual(new Set([made.id, forked.id]));
  });

  test('only the beginning of a very long answer can be searched', async () => {
    const { store } = world;
    const long = foreign(1, 's', `beginning ${'x '.repeat(600_000)} ending`);
    await store.importConversation(ANN, spec(), { records: [long], sessions: [] });
    expect(await store.search(ANN, 'beginning', 9)).toMatchObject([{ n: 1 }]);
    expect(await store.search(ANN, 'ending', 9)).toEqual([]);
  });
}

/** A conversation with this number of completed turns, in one session. */
async function told({ store }: World, count: number, text = 'Tell me.') {
  const { conversation, turn, holder } = await begun(store);
  const opened = session();
  const first: Turn = turn;
  await holder.write(opening(opened), sending(first.id, { session: opened.ref }));
  const answered = record(first, { sessionId: opened.id, parts: [{ type: 'text', text }] });
  await holder.write(ending(first, { session: opened.ref, record: answered, usage: usage(1) }));
  for (let n = 2; n <= count; n += 1) await runTurn(store, holder, { prompt: prompt(text) }, { session: opened.ref });
  return { conversation, holder };
}

function foreign(n: number, sessionId: string, text = `Answer ${n} with a codeword.`): TurnRecord {
  const parts = [{ type: 'text', text }] as const;
  const ended = { outcome: 'completed', failure: null, usage: usage(4), startedAt: n, endedAt: n + 1 } as const;
  return { version: 1, n, agent: AGENT, sessionId, prompt: prompt(`Question ${n}`), parts, ...ended };
}
