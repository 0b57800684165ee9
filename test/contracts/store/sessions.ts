import { expect, test } from 'vitest';
import { NO_USAGE } from '../../../src/core/turn/usage.ts';
import type { SessionChange } from '../../../src/ports/store/sessions.ts';
import type { Write } from '../../../src/ports/store/writes.ts';
import {
  ANN,
  allEvents,
  begun,
  claim,
  codeOf,
  ending,
  enqueue,
  fresh,
  Holder,
  newConversation,
  opening,
  receipt,
  runTurn,
  sending,
  session,
  spec,
  usage,
  type World,
} from './world.ts';

export function sessions(world: World): void {
  test('a session is stored with all of its details, and its turn has its id', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const process = { kind: 'test', id: '3', label: 'process 3' };
    const omitted = { shortened: 1, leftOut: { outputs: 3, images: 2, files: 0 } };
    const opened = session({ position: 'p1', process, dropped: 2, omitted });
    await holder.write(opening(opened, turn.id));
    expect(await store.sessions(ANN, conversation)).toMatchObject([
      { ...opened, conversation, turns: 0, usage: NO_USAGE },
    ]);
    expect((await store.findTurn(ANN, turn.id))?.sessionId).toBe(opened.id);
    const { id, agent, origin } = opened;
    expect((await allEvents(store, conversation)).at(-1)).toMatchObject({
      kind: 'session.opened',
      turn: turn.id,
      payload: { id, agent, origin, parent: null },
    });
  });

  test('an id that changed is a new session, whose parent is the old one', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const first = session();
    const second = session({ origin: 'rotated', parent: first.ref });
    await holder.write(opening(first, turn.id), opening(second, turn.id));
    expect((await store.sessions(ANN, conversation)).map(({ ref, parent }) => [ref, parent])).toEqual([
      [second.ref, first.ref],
      [first.ref, null],
    ]);
    expect((await store.findTurn(ANN, turn.id))?.sessionId).toBe(second.id);
    expect((await allEvents(store, conversation)).at(-1)).toMatchObject({
      payload: { id: second.id, parent: first.id },
    });
    expect(await codeOf(holder.write(opening(session({ parent: fresh('unknown') }))))).toBe('not_found');
  });

  test('a usable native session belongs to one conversation', async () => {
    const { store, site } = world;
    const [a, b] = [await begun(store), await begun(store)];
    const opened = session();
    await a.holder.write(opening(opened));
    const before = await site.contents();
    expect(await codeOf(b.holder.write(opening(session({ id: opened.id }))))).toBe('conflict');
    expect(await codeOf(a.holder.write(opening(session({ id: opened.id }))))).toBe('conflict');
    expect(await site.contents()).toBe(before);
    expect(await codeOf(b.holder.write(opening(session({ id: opened.id, agent: 'other' }))))).toBeNull();
  });

  test('a native session is identified by its storage and id, whatever the name of its agent', async () => {
    const { store, site } = world;
    const [a, b] = [await begun(store), await begun(store)];
    const opened = session({ storage: '/shared' });
    await a.holder.write(opening(opened));
    const before = await site.contents();
    const another = session({ id: opened.id, agent: 'other', storage: '/shared' });
    expect(await codeOf(b.holder.write(opening(another)))).toBe('conflict');
    expect(await site.contents()).toBe(before);
    expect(await codeOf(b.holder.write(opening({ ...another, storage: '/its own' })))).toBeNull();
    expect(await codeOf(b.holder.write(opening(session({ id: opened.id }))))).toBeNull();
    // If the same agent has a session of that id elsewhere as well, the one of the conversation is meant.
    for (const { conversation } of [a, b])
      expect(await codeOf(enqueue(store, conversation, { options: { session: opened.id } }))).toBeNull();
  });

  test('a native session is elsewhere if another conversation can use it, or used it last', async () => {
    const { store } = world;
    const { conversation: a, holder } = await begun(store);
    const ofA = session({ storage: '/shared' });
    const native = { storage: '/shared', id: ofA.id };
    const id = await newConversation(store);
    const bobs = await store.ensureConversation('bob', spec());
    const elsewhere = async () => [
      await store.sessionIsElsewhere(ANN, a, native),
      await store.sessionIsElsewhere(ANN, id, native),
      await store.sessionIsElsewhere('bob', bobs.conversation.id, native),
    ];
    expect(await elsewhere()).toEqual([false, false, false]);
    await holder.write(opening(ofA));
    expect(await elsewhere()).toEqual([false, true, true]);
    expect(await store.sessionIsElsewhere(ANN, id, { ...native, storage: '/its own' })).toBe(false);
    await holder.write(changing(ofA.ref, { state: 'lost' }));
    expect(await elsewhere()).toEqual([false, true, true]);
    await enqueue(store, id);
    const { fence } = await claim(store, { conversation: id });
    await new Holder(store, fence).write(opening(session({ ...native, agent: 'other' })));
    expect(await elsewhere()).toEqual([true, false, true]);
  });

  test.each(['diverged', 'lost', 'closed'] as const)(
    'a session that is %s may be used by another conversation, and cannot become usable again',
    async (state) => {
      const { store } = world;
      const [a, b] = [await begun(store), await begun(store)];
      const opened = session();
      await a.holder.write(opening(opened), changing(opened.ref, { state }));
      await b.holder.write(opening(session({ id: opened.id })));
      expect(await codeOf(a.holder.write(changing(opened.ref, { state: 'dormant' })))).toBe('conflict');
    },
  );

  test('the copy of a transcript file grows piece by piece, byte for byte, and can be started again', async () => {
    const { store } = world;
    const { conversation, holder } = await begun(store);
    const opened = session();
    await holder.write(opening(opened));
    expect(await store.transcript(ANN, conversation, opened.ref)).toBeNull();
    const bytes = (...values: number[]) => Uint8Array.from(values);
    const grow = (from: number, ...values: number[]) =>
      changing(opened.ref, { mirror: { from, bytes: bytes(...values) } });
    await holder.write(grow(0, 0, 255, 10), grow(3, 1));
    await holder.write(grow(4));
    const copy = async () => [...((await store.transcript(ANN, conversation, opened.ref)) ?? [])];
    expect(await copy()).toEqual([0, 255, 10, 1]);
    expect((await store.sessions(ANN, conversation))[0]?.mirrored).toBe(4);
    expect(await codeOf(holder.write(grow(5, 9)))).toBe('invalid');
    expect(await copy()).toEqual([0, 255, 10, 1]);
    await holder.write(grow(0, 7, 8));
    expect(await copy()).toEqual([7, 8]);
    expect(await codeOf(store.transcript('somebody else', conversation, opened.ref))).toBe('not_found');
  });

  test('the memo of an adapter is stored unchanged', async () => {
    const { store } = world;
    const { conversation, holder } = await begun(store);
    const opened = session();
    await holder.write(opening(opened), changing(opened.ref, { memo: 'a note' }), changing(opened.ref, {}));
    expect((await store.sessions(ANN, conversation))[0]?.memo).toBe('a note');
    await holder.write(changing(opened.ref, { memo: null }));
    expect((await store.sessions(ANN, conversation))[0]?.memo).toBeNull();
  });

  test('a change sets what it names and keeps the rest', async () => {
    const { store } = world;
    const { conversation, holder } = await begun(store);
    const process = { kind: 'test', id: '3', label: 'process 3' };
    const opened = session({ position: 'p1', process, dropped: 1 });
    await holder.write(opening(opened), changing(opened.ref, { state: 'dormant', process: null }, 'let go'));
    expect((await store.sessions(ANN, conversation))[0]).toMatchObject({
      ...{ state: 'dormant', process: null, position: 'p1', dropped: 1, watermark: 0 },
    });
    await holder.write(changing(opened.ref, { position: null, dropped: 0 }));
    expect((await store.sessions(ANN, conversation))[0]).toMatchObject({
      state: 'dormant',
      position: null,
      dropped: 0,
    });
    const changes = (await allEvents(store, conversation)).filter(({ kind }) => kind === 'session.changed');
    expect(changes[0]?.payload).toEqual({ id: opened.id, state: 'dormant', watermark: 0, reason: 'let go' });
    expect(await codeOf(holder.write(changing(fresh('unknown'), { state: 'lost' })))).toBe('not_found');
  });

  test('no watermark is beyond the head of the history', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const opened = session();
    expect(await codeOf(holder.write(opening({ ...opened, watermark: 1 })))).toBe('invalid');
    await holder.write(opening(opened), sending(turn.id, { session: opened.ref }));
    expect(await codeOf(holder.write(changing(opened.ref, { watermark: 1 })))).toBe('invalid');
    await holder.write(changing(opened.ref, { watermark: 1 }), ending(turn, { session: opened.ref }));
    expect((await store.sessions(ANN, conversation))[0]?.watermark).toBe(1);
    expect(await codeOf(holder.write(changing(opened.ref, { watermark: 2 })))).toBe('invalid');
  });

  test('the lineage begins with the session that was used last, whatever the clock says and other changes of sessions', async () => {
    const { store, site } = world;
    const { conversation, turn, holder } = await begun(store);
    const [a, b, other] = [session(), session(), session({ agent: 'other' })];
    await holder.write(opening(a), opening(b), opening(other));
    site.jump(-50_000);
    await holder.write(sending(turn.id, { session: a.ref }), changing(b.ref, { state: 'closed' }));
    const refs = async (filter?: { agent?: string; limit?: number }) =>
      (await store.sessions(ANN, conversation, filter)).map(({ ref }) => ref);
    expect(await refs()).toEqual([a.ref, other.ref, b.ref]);
    expect(await refs({ agent: a.agent })).toEqual([a.ref, b.ref]);
    expect(await refs({ limit: 1 })).toEqual([a.ref]);
    expect(await refs({ agent: 'unknown' })).toEqual([]);
  });

  test('the session in which a turn ended is that of the turn, and the one used last', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const [a, b] = [session(), session()];
    await holder.write(opening(a), opening(b), sending(turn.id, { session: b.ref }), ending(turn, { session: a.ref }));
    expect((await store.findTurn(ANN, turn.id))?.sessionId).toBe(a.id);
    expect((await store.sessions(ANN, conversation)).map(({ ref }) => ref)).toEqual([a.ref, b.ref]);
  });

  test('the session of a turn is the one used last when the turn ends, though another was opened since', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const [own, later] = [session(), session()];
    await holder.write(opening(own), sending(turn.id, { session: own.ref }));
    await holder.write(opening(later));
    await holder.write(ending(turn, { session: own.ref }));
    expect((await store.sessions(ANN, conversation)).map(({ ref }) => ref)).toEqual([own.ref, later.ref]);
  });

  test('a turn can be sent only to a session of its agent, and only with its own receipt', async () => {
    const { store, site } = world;
    const { turn, holder } = await begun(store);
    const [own, other] = [session(), session({ agent: 'other' })];
    await holder.write(opening(own), opening(other));
    const before = await site.contents();
    const stranger = receipt({ turn: turn.n + 1 });
    expect(await codeOf(holder.write(sending(turn.id, { session: other.ref })))).toBe('conflict');
    const wrong = { write: 'receipt', receipt: stranger, turn: turn.id, session: own.ref } as const;
    expect(await codeOf(holder.write(wrong, sending(turn.id, { session: own.ref })))).toBe('conflict');
    expect(await site.contents()).toBe(before);
    await holder.write({ ...wrong, receipt: receipt({ turn: turn.n }) }, sending(turn.id, { session: own.ref }));
    expect((await store.findTurn(ANN, turn.id))?.sessionId).toBe(own.id);
  });

  test('a session counts its turns, their usage and the usage of its restore, each once', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const opened = session();
    const restoring = receipt({ usage: usage(100) });
    const written = { write: 'receipt', turn: turn.id, session: opened.ref } as const;
    await holder.write(opening(opened), { ...written, receipt: restoring });
    await holder.write({ ...written, receipt: { ...restoring, after: 'proved' } });
    await holder.write(
      sending(turn.id, { session: opened.ref }),
      ending(turn, { session: opened.ref, usage: usage(10) }),
    );
    await runTurn(store, holder, {}, { session: opened.ref, usage: usage(1) });
    expect((await store.sessions(ANN, conversation))[0]).toMatchObject({
      turns: 2,
      usage: { inputTokens: 111, outputTokens: 222, costMicros: 333, modelCalls: 3 },
    });
  });

  test('a session keeps how full its context was when that was last reported', async () => {
    const { store } = world;
    const { conversation, holder } = await begun(store);
    const opened = session();
    await holder.write(opening(opened));
    const stored = async () => (await store.sessions(ANN, conversation))[0]?.context;
    expect(await stored()).toBeNull();
    await holder.write(changing(opened.ref, { context: { used: 5, size: 9 } }));
    await holder.write(changing(opened.ref, { state: 'dormant' }));
    expect(await stored()).toEqual({ used: 5, size: 9 });
  });

  test('sessions are found by the id of the agent, in every conversation of the owner', async () => {
    const { store } = world;
    const [a, b] = [await begun(store), await begun(store)];
    const opened = session();
    await a.holder.write(opening(opened), changing(opened.ref, { state: 'lost' }));
    const again = session({ id: opened.id });
    await b.holder.write(opening(again));
    expect((await store.findSessions(ANN, opened.id)).map(({ ref, conversation }) => [ref, conversation])).toEqual([
      [again.ref, b.conversation],
      [opened.ref, a.conversation],
    ]);
    expect(await store.findSessions(ANN, 'unknown')).toEqual([]);
  });
}

function changing(ref: string, change: SessionChange, reason: string | null = null): Write {
  return { write: 'change-session', ref, change, reason };
}
