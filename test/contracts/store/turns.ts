import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Write } from '../../../src/ports/store/writes.ts';
import {
  AGENT,
  ANN,
  allEvents,
  BOB,
  begun,
  codeOf,
  ending,
  enqueue,
  fresh,
  kinds,
  newConversation,
  newTurn,
  nextTurn,
  opening,
  prompt,
  sending,
  session,
  spec,
  type World,
} from './world.ts';

export function turns(world: World): void {
  test('a first turn creates its conversation; a turn that must be the first is refused where there is one by now', async () => {
    const { store } = world;
    const creates = spec({ key: fresh('key'), title: 'A title' });
    const first = newTurn(creates.id, { creates, isFirst: true });
    expect((await store.enqueue(ANN, first)).turn).toMatchObject({ n: 1, conversation: creates.id });
    expect(await store.findConversation(ANN, creates.id)).toMatchObject({ key: creates.key, title: 'A title' });
    const later = spec({ key: creates.key });
    expect(await codeOf(store.enqueue(ANN, newTurn(later.id, { creates: later, isFirst: true })))).toBe('conflict');
    expect((await store.enqueue(ANN, newTurn(later.id, { creates: later }))).turn).toMatchObject({
      n: 2,
      conversation: creates.id,
    });
  });

  test('an accepted turn is queued with the next number, and the returned seq is that of its event', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const first = await store.enqueue(
      ANN,
      newTurn(id, { requestId: 'r1', prompt: prompt('Hello there'), by: 'ann by key 0123' }),
    );
    const second = await store.enqueue(ANN, newTurn(id));
    expect(first).toMatchObject({ duplicate: false, turn: { n: 1, state: 'queued', attempt: 0, agent: AGENT } });
    expect(first.turn).toMatchObject({ sessionId: null, sent: null, failure: null, startedAt: null, endedAt: null });
    expect(second.turn.n).toBe(2);
    const events = await allEvents(store, id);
    const queued = (given: number) => events.find(({ seq }) => seq === given);
    const payload = {
      n: 1,
      agent: AGENT,
      requestId: 'r1',
      retryOf: null,
      by: 'ann by key 0123',
      preview: 'Hello there',
    };
    expect(queued(first.seq)).toMatchObject({ kind: 'turn.queued', turn: first.turn.id, payload });
    expect(queued(second.seq)?.payload).not.toHaveProperty('by');
    // A repetition by another caller is the same request.
    const again = newTurn(id, { requestId: 'r1', prompt: prompt('Hello there'), by: 'ann by page' });
    expect(await store.enqueue(ANN, again)).toMatchObject({ duplicate: true, turn: { id: first.turn.id } });
  });

  test('another handle can read an accepted turn at once, word for word', async () => {
    const { store, site } = world;
    const id = await newConversation(store);
    const long = `${'ä'.repeat(50_000)}\u0000\ud800 an unpaired surrogate`;
    const blocks = [
      { type: 'text', text: long },
      { type: 'text', text: '\u0000 odd' },
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
    ] as const;
    const turn = await enqueue(store, id, {
      prompt: blocks,
      options: { permissions: 'deny', restore: { lastTurns: 3 } },
    });
    const seen = await (await site.open()).findTurn(ANN, turn.id);
    expect(seen).toEqual(turn);
    expect(seen?.prompt).toEqual(blocks);
    expect(seen?.options).toEqual({ permissions: 'deny', restore: { lastTurns: 3 } });
  });

  test('a chosen id for a new session is refused if any conversation has used it, or an open turn wants it', async () => {
    const { store } = world;
    const { conversation, holder, turn } = await begun(store);
    await holder.write(opening(session({ id: 'mine', state: 'lost' }), turn.id));
    const other = await newConversation(store, {}, BOB);
    const asked = (id: string) => newTurn(other, { options: { newSession: id }, requestId: fresh('r') });
    expect(await codeOf(store.enqueue(BOB, asked('mine')))).toBe('refused');
    const wanted = asked('free');
    const first = await store.enqueue(BOB, wanted);
    expect(await store.enqueue(BOB, { ...wanted, id: fresh('turn') })).toEqual({ ...first, duplicate: true });
    expect(await codeOf(store.enqueue(BOB, asked('free')))).toBe('refused');
    expect(await codeOf(store.enqueue(ANN, newTurn(conversation, { options: { newSession: 'free' } })))).toBe(
      'refused',
    );
    // It was never used.
    await store.requestCancel(BOB, first.turn.id, BOB);
    expect((await store.enqueue(BOB, asked('free'))).turn.options).toEqual({ newSession: 'free' });
  });

  test('the same request again returns the first turn and stores nothing', async () => {
    const { store, site } = world;
    const id = await newConversation(store);
    const set = { requestId: 'r', agent: AGENT, options: { session: 's', permissions: 'ask' } } as const;
    const first = await store.enqueue(ANN, newTurn(id, set));
    await enqueue(store, id);
    const before = await site.contents();
    const swapped = { permissions: 'ask', session: 's' } as const;
    const again = await store.enqueue(ANN, newTurn(id, { ...set, options: swapped, defaultAgent: 'whatever' }));
    expect(again).toEqual({ ...first, duplicate: true });
    expect(await site.contents()).toBe(before);
  });

  test('the same request id sent many times at once, by several handles, is one turn', async () => {
    const { store, site } = world;
    const other = await site.open();
    const id = await newConversation(store);
    const at = [store, other, store, other, store];
    const answers = await Promise.all(at.map((handle) => handle.enqueue(ANN, newTurn(id, { requestId: 'r' }))));
    expect(new Set(answers.map(({ turn }) => turn.id)).size).toBe(1);
    expect(answers.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect(await store.turns(ANN, id, { after: 0, limit: 9 })).toHaveLength(1);
  });

  test.each([
    ['prompt', { prompt: prompt('Another') }],
    ['agent', { agent: 'other' }],
    ['options', { options: { session: 'x' } }],
  ])('the same request id with another %s is a conflict', async (_what, change) => {
    const { store, site } = world;
    const id = await newConversation(store);
    await enqueue(store, id, { requestId: 'r' });
    const before = await site.contents();
    expect(await codeOf(enqueue(store, id, { requestId: 'r', ...change }))).toBe('conflict');
    expect(await site.contents()).toBe(before);
  });

  test('the same request id in another conversation is a conflict, with another owner it is not', async () => {
    const { store } = world;
    const id = await newConversation(store);
    await enqueue(store, id, { requestId: 'r' });
    expect(await codeOf(enqueue(store, await newConversation(store), { requestId: 'r' }))).toBe('conflict');
    const bobs = await newConversation(store, {}, BOB);
    expect(await codeOf(enqueue(store, bobs, { requestId: 'r' }, BOB))).toBeNull();
  });

  test('a turn is found by its request id', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const turn = await enqueue(store, id, { requestId: 'r' });
    expect(await store.findRequest(ANN, 'r')).toEqual(turn);
    expect(await store.findRequest(ANN, 'other')).toBeNull();
  });

  test('the agent is the one named, else that of the turn before, else of the conversation, else the default', async () => {
    const { store } = world;
    const id = await newConversation(store, { agent: 'own' });
    expect((await enqueue(store, id, { defaultAgent: 'default' })).agent).toBe('own');
    expect((await enqueue(store, id, { agent: 'named' })).agent).toBe('named');
    expect((await enqueue(store, id)).agent).toBe('named');
    const without = await newConversation(store, { agent: null });
    expect(await codeOf(enqueue(store, without))).toBe('invalid');
    expect((await enqueue(store, without, { defaultAgent: 'default' })).agent).toBe('default');
  });

  test('a native session that is usable in another conversation of any owner is refused, without naming it', async () => {
    const { store, site } = world;
    const { holder, turn, conversation } = await begun(store);
    const native = session();
    await holder.write(opening(native, turn.id));
    const options = { session: native.id };
    const bobs = await newConversation(store, {}, BOB);
    const refusal: Error = await store.enqueue(BOB, newTurn(bobs, { options })).then(
      () => new Error('accepted'),
      (error) => error,
    );
    expect(refusal).toMatchObject({ code: 'refused' });
    expect(refusal.message).not.toMatch(new RegExp(`\\b(${ANN}|${conversation})\\b`));
    const before = await site.contents();
    expect(await codeOf(enqueue(store, await newConversation(store), { options, agent: 'other' }))).toBeNull();
    expect(await codeOf(enqueue(store, conversation, { options }))).toBeNull();
    expect(await site.contents()).not.toBe(before);
    await holder.write({ write: 'change-session', ref: native.ref, change: { state: 'closed' }, reason: null });
    expect(await codeOf(enqueue(store, bobs, { options }, BOB))).toBeNull();
  });

  test('a retry names a turn of the same conversation', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const first = await enqueue(store, id);
    expect((await enqueue(store, id, { retryOf: first.id })).retryOf).toBe(first.id);
    expect(await codeOf(enqueue(store, await newConversation(store), { retryOf: first.id }))).toBe('not_found');
  });

  test('turns are listed by number, in pages', async () => {
    const { store } = world;
    const id = await newConversation(store);
    for (let i = 0; i < 5; i += 1) await enqueue(store, id);
    const numbers = async (page: { after: number; limit: number }) =>
      (await store.turns(ANN, id, page)).map(({ n }) => n);
    expect(await numbers({ after: 0, limit: 2 })).toEqual([1, 2]);
    expect(await numbers({ after: 2, limit: 9 })).toEqual([3, 4, 5]);
    expect(await numbers({ after: 5, limit: 9 })).toEqual([]);
  });

  test('a cancelled queued turn ends at once, and never begins', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const [first, second] = [await enqueue(store, id), await enqueue(store, id)];
    expect(await store.requestCancel(ANN, first.id, 'someone')).toMatchObject({
      state: 'cancelled',
      cancelRequested: true,
    });
    expect((await kinds(store, id)).slice(-2)).toEqual(['turn.cancel_requested', 'turn.ended']);
    expect((await store.summary(ANN, id)).open).toBe(1);
    expect((await store.claim(request()))?.turn?.id).toBe(second.id);
    expect((await store.findConversation(ANN, id))?.head).toBe(0);
  });

  test('when the last queued turn is cancelled there is nothing left to claim', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const turn = await enqueue(store, id);
    await store.requestCancel(ANN, turn.id, 'someone');
    expect(await store.claim(request())).toBeNull();
  });

  test('a cancel of a running turn is recorded once, and its holder ends the turn', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    expect(await store.requestCancel(ANN, turn.id, 'someone')).toMatchObject({
      state: 'running',
      cancelRequested: true,
    });
    await store.requestCancel(ANN, turn.id, 'another');
    const asked = (await allEvents(store, conversation)).filter((event) => event.kind === 'turn.cancel_requested');
    expect(asked).toMatchObject([{ turn: turn.id, payload: { n: 1, by: 'someone' } }]);
    const failure = { code: 'cancelled', message: 'Asked to.' } as const;
    await holder.write(ending(turn, { outcome: 'cancelled', failure, record: null }));
    expect(await store.findTurn(ANN, turn.id)).toMatchObject({ state: 'cancelled', failure });
  });

  test('a turn whose prompt the agent did not take counts as never sent, and is not part of the history', async () => {
    const { store, site } = world;
    const { conversation, turn, holder } = await begun(store);
    const unsent = { outcome: 'failed', record: null, unsent: true } as const;
    await holder.write(sending(turn.id));
    expect(await codeOf(holder.write(ending(turn, { outcome: 'failed', record: null }))), 'it was sent').toBe(
      'invalid',
    );
    expect(await codeOf(holder.write(ending(turn, { unsent: true }))), 'it has a record').toBe('invalid');
    await holder.write(ending(turn, unsent));
    expect(await store.findTurn(ANN, turn.id)).toMatchObject({ state: 'failed', sent: null });
    expect(await store.recordsAfter(ANN, conversation, { after: 0, limit: 10 })).toEqual([]);
    expect(await store.findConversation(ANN, conversation)).toMatchObject({ head: 0, historyCount: 0 });
    await enqueue(store, conversation);
    const next = (await nextTurn(store, holder.fence)) ?? expect.unreachable();
    await holder.write(sending(next.id), { write: 'retry', turn: next.id, failure: FAILURE }, sending(next.id));
    const before = await site.contents();
    expect(await codeOf(holder.write(ending(next, unsent))), 'it was tried before').toBe('invalid');
    expect(await site.contents()).toBe(before);
  });

  test('cancelling an ended turn changes nothing', async () => {
    const { store, site } = world;
    const { turn, holder } = await begun(store);
    await holder.write(sending(turn.id), ending(turn));
    const before = await site.contents();
    expect((await store.requestCancel(ANN, turn.id, 'late')).state).toBe('completed');
    expect(await site.contents()).toBe(before);
  });

  test('a turn with deliverTo is pending until it is delivered, only for its owner', async () => {
    const { store } = world;
    const { turn: plain, holder, conversation } = await begun(store);
    await holder.write(sending(plain.id), ending(plain));
    const due = { options: { deliverTo: '#birds' } };
    const other = await newConversation(store);
    const [one, two, three] = [
      await enqueue(store, conversation, due),
      await enqueue(store, other, due),
      await enqueue(store, conversation, due),
    ];
    const ids = async (page: { after?: string; limit: number } = { limit: 9 }) =>
      (await store.pending(ANN, page)).map(({ turn }) => turn.id);
    expect(await ids()).toEqual([one.id, two.id, three.id]);
    expect(await ids({ limit: 1 })).toEqual([one.id]);
    expect(await ids({ after: one.id, limit: 9 })).toEqual([two.id, three.id]);
    expect(await store.pending(BOB, { limit: 9 })).toEqual([]);
    expect(await codeOf(store.pending(BOB, { after: one.id, limit: 9 }))).toBe('not_found');
    expect(await codeOf(store.setDelivered(ANN, one.id)), 'it is queued').toBe('conflict');
    await store.requestCancel(ANN, one.id, 'ann');
    expect(await codeOf(store.setDelivered(BOB, one.id))).toBe('not_found');
    expect(await store.setDelivered(ANN, one.id)).toMatchObject({ state: 'cancelled', delivered: true });
    expect(await store.setDelivered(ANN, one.id)).toEqual(await store.findTurn(ANN, one.id));
    expect(await ids()).toEqual([two.id, three.id]);
    expect(await codeOf(store.setDelivered(ANN, plain.id))).toBe('invalid');
    await store.requestCancel(ANN, two.id, 'ann');
    await store.eraseConversation(ANN, other);
    expect(await ids()).toEqual([three.id]);
  });

  test('what a session was told is read as written, and what it was told before belongs to the first turn sent in it', async () => {
    const { store } = world;
    const { turn, holder } = await begun(store);
    const native = session();
    const written = { as: 'transcript', text: '\u0000 a file', sha256: sha256('\u0000 a file') } as const;
    const own = { as: 'prompt', turn: 1, content: turn.prompt, sha256: sha256(JSON.stringify(turn.prompt)) } as const;
    await holder.write(opening(native), { write: 'told', session: native.ref, told: [written] });
    expect(await store.told(ANN, turn.id)).toBeNull();
    const told = own.sha256;
    await holder.write(sending(turn.id, { session: native.ref, told }));
    expect(await store.told(ANN, turn.id)).toMatchObject({ sessionId: native.id, parts: [written, own] });
    expect(await store.told(BOB, turn.id)).toBeNull();
    const content = [...prompt('What was before'), ...turn.prompt];
    const longer = { ...own, content, sha256: sha256(JSON.stringify(content)) };
    const again = { ...sending(turn.id, { session: native.ref, attempt: 2, told: longer.sha256 }), told: [longer] };
    await holder.write({ write: 'retry', turn: turn.id, failure: FAILURE }, again as Write);
    expect((await store.told(ANN, turn.id))?.parts).toEqual([longer]);
    expect((await store.told(ANN, turn.id, 1))?.parts).toEqual([written, own]);
    expect(await store.told(ANN, turn.id, 3)).toBeNull();
    await holder.write(
      { write: 'retry', turn: turn.id, failure: FAILURE },
      sending(turn.id, { attempt: 3, told: 'x' }),
    );
    expect(await codeOf(store.told(ANN, turn.id)), 'its hash is another').toBe('storage_damaged');
    await holder.write({ write: 'retry', turn: turn.id, failure: FAILURE }, sending(turn.id, { attempt: 4 }));
    expect(await store.told(ANN, turn.id), 'nobody kept it').toMatchObject({ parts: null, sent: { attempt: 4 } });
  });

  test('a turn of an unknown conversation is not accepted', async () => {
    expect(await codeOf(enqueue(world.store, fresh('nothing')))).toBe('not_found');
  });
}

const sha256 = (text: string) => hash('sha256', text, 'hex');
const FAILURE = { code: 'agent_failed', message: 'It does not work.' } as const;

function request() {
  const process = { pid: 9, started: '1', boot: 'boot-1', namespace: 'pid-1' };
  return {
    worker: { id: 'w', process },
    place: 'this-host',
    agents: [AGENT],
    driver: 'worker',
    leaseMs: 1000,
  } as const;
}
