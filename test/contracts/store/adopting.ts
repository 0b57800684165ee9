import { expect, test } from 'vitest';
import type { NativeTurn } from '../../../src/core/restore/adopted.ts';
import type { AdoptedSession } from '../../../src/ports/store/turns.ts';
import {
  AGENT,
  ANN,
  allEvents,
  BOB,
  claim,
  codeOf,
  ending,
  enqueue,
  fresh,
  Holder,
  kinds,
  newConversation,
  newTurn,
  nextTurn,
  opening,
  prompt,
  sending,
  session,
  type World,
} from './world.ts';

function native(text: string, at: number): NativeTurn {
  const parts = [{ type: 'text', text: `About ${text}` }] as const;
  return { prompt: prompt(text), parts, outcome: 'completed', failure: null, startedAt: at, endedAt: at + 1 };
}

function adopted(texts: readonly string[], set: Partial<AdoptedSession> = {}, unknownBefore = false): AdoptedSession {
  const history = { turns: texts.map((text, i) => native(text, i * 10)), unknownBefore, condensed: 0, position: '9:z' };
  return { ref: fresh('ref'), id: fresh('native'), agent: AGENT, storage: 'here', history, ...set };
}

/** What happens when a turn names a session that the conversation adopts. */
export function adopting(world: World): void {
  test('the turns of an adopted session come before the turn that names it, and are part of the history', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const adopts = adopted(['one', 'two']);
    const { turn, seq } = await store.enqueue(ANN, newTurn(id, { adopts, options: { session: adopts.id } }));
    expect(turn).toMatchObject({ n: 3, state: 'queued', imported: false });
    const [first, second] = await store.turns(ANN, id, { after: 0, limit: 2 });
    expect(first).toMatchObject({ n: 1, state: 'completed', imported: true, sessionId: adopts.id, sent: null });
    expect(second).toMatchObject({ n: 2, prompt: prompt('two') });
    const records = await store.recordsAfter(ANN, id, { after: 0, limit: 9 });
    expect(records.map((record) => [record.n, record.prompt, record.startedAt])).toEqual([
      [1, prompt('one'), 0],
      [2, prompt('two'), 10],
    ]);
    expect(await store.findConversation(ANN, id)).toMatchObject({ head: 2, historyCount: 2, title: 'one' });
    expect(await store.countRecordsAfter(ANN, id, 1)).toBe(1);
    expect(await store.sessions(ANN, id)).toMatchObject([
      { ref: adopts.ref, id: adopts.id, origin: 'adopted', watermark: 2, dropped: 0, turns: 0, position: '9:z' },
    ]);
    expect(await kinds(store, id)).toEqual([
      'conversation.created',
      'conversation.titled',
      'session.opened',
      'conversation.imported',
      'turn.queued',
    ]);
    expect((await allEvents(store, id)).at(-1)?.seq).toBe(seq);
    expect(await store.summary(ANN, id)).toMatchObject({ contexts: 2, sessions: 1, changes: 0, open: 1 });
    expect((await store.verify(ANN, id)).broken).toBeNull();
  });

  test('earlier turns of the conversation stay first, and are recorded as missing in the adopted session', async () => {
    const { store } = world;
    const id = await newConversation(store);
    await enqueue(store, id);
    const { fence, turn } = await claim(store, { conversation: id });
    const holder = new Holder(store, fence);
    if (turn === null) throw new Error('nothing was begun');
    await holder.write(sending(turn.id), ending(turn));
    const adopts = adopted(['one', 'two', 'three']);
    const asked = await enqueue(store, id, { adopts });
    expect(asked.n).toBe(5);
    expect(await store.sessions(ANN, id)).toMatchObject([{ id: adopts.id, watermark: 4, dropped: 1 }]);
    // The holder of the conversation continues with the turn.
    const next = await nextTurn(store, fence);
    if (next === null) throw new Error('nothing was begun');
    await holder.write(sending(next.id), ending(next));
    expect(next.n).toBe(5);
    expect(await store.findConversation(ANN, id)).toMatchObject({ head: 5, historyCount: 5 });
  });

  test('a session is adopted once', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const adopts = adopted(['one']);
    const asked = newTurn(id, { adopts, requestId: 'r', options: { session: adopts.id } });
    const first = await store.enqueue(ANN, asked);
    expect(await store.enqueue(ANN, { ...asked, id: fresh('turn') })).toEqual({ ...first, duplicate: true });
    // Two requests have read it at the same time.
    const second = await enqueue(store, id, { adopts: { ...adopts, ref: fresh('ref') } });
    expect([first.turn.n, second.n]).toEqual([2, 3]);
    expect(await store.sessions(ANN, id)).toHaveLength(1);
    const other = await newConversation(store, {}, BOB);
    const elsewhere = newTurn(other, { adopts: { ...adopts, ref: fresh('ref') } });
    expect(await codeOf(store.enqueue(BOB, elsewhere))).toBe('refused');
    expect(await store.turns(BOB, other, { after: 0, limit: 9 })).toEqual([]);
  });

  test('nothing is adopted while a turn is open, or for another agent', async () => {
    const { store, site } = world;
    const id = await newConversation(store);
    const wrong = newTurn(id, { adopts: adopted(['one'], { agent: 'other' }) });
    expect(await codeOf(store.enqueue(ANN, wrong))).toBe('conflict');
    await enqueue(store, id);
    const before = await site.contents();
    expect(await codeOf(store.enqueue(ANN, newTurn(id, { adopts: adopted(['one']) })))).toBe('conflict');
    expect(await site.contents()).toBe(before);
  });

  test('that a part of its history is unknown stays recorded, also in a fork', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const adopts = adopted(['two', 'three'], {}, true);
    await enqueue(store, id, { adopts });
    const part = { n: 1, agent: AGENT, sessionId: adopts.id };
    expect(await store.unknownParts(ANN, id)).toEqual([part]);
    const [record] = await store.recordsAfter(ANN, id, { after: 0, limit: 1 });
    expect(record?.unknownBefore).toBe(true);
    const fork = await store.fork(ANN, id, 2, { ...(await spec(id)), key: null });
    expect(await store.unknownParts(ANN, fork.id)).toEqual([part]);
    expect(await codeOf(store.unknownParts(BOB, id))).toBe('not_found');
  });

  test('the first turn of a session that was adopted unread is recorded as following an unknown part', async () => {
    const { store } = world;
    const conversation = await newConversation(store);
    await enqueue(store, conversation);
    await enqueue(store, conversation);
    const { fence, turn } = await claim(store, { conversation });
    const holder = new Holder(store, fence);
    const unread = session({ origin: 'adopted', unread: true });
    const sent = { session: unread.ref };
    if (turn === null) throw new Error('nothing was begun');
    await holder.write(opening(unread, turn.id), sending(turn.id, sent), ending(turn, sent));
    const next = await nextTurn(store, fence);
    if (next === null) throw new Error('nothing was begun');
    await holder.write(sending(next.id, sent), ending(next, sent));
    expect(await store.unknownParts(ANN, conversation)).toEqual([{ n: 1, agent: AGENT, sessionId: unread.id }]);
    const [first, second] = await store.recordsAfter(ANN, conversation, { after: 0, limit: 2 });
    expect([first?.unknownBefore, second?.unknownBefore]).toEqual([true, undefined]);
  });

  async function spec(id: string) {
    const found = await world.store.findConversation(ANN, id);
    if (found === null) throw new Error('it is gone');
    return { ...found, id: fresh('conversation'), title: null };
  }
}
