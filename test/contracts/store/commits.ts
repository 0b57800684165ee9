import { expect, test } from 'vitest';
import type { ConversationEvent, EventDraft } from '../../../src/core/event.ts';
import { toPublicEvent } from '../../../src/core/public/event.ts';
import type { Write } from '../../../src/ports/store/writes.ts';
import {
  ANN,
  allEvents,
  beginNext,
  begun,
  codeOf,
  ending,
  endingUnsent,
  enqueue,
  fresh,
  Holder,
  kinds,
  newConversation,
  opening,
  prompt,
  record,
  sending,
  session,
  update,
  usage,
  type World,
} from './world.ts';

export function commits(world: World): void {
  test('events are numbered without gaps, whoever writes them', async () => {
    const { store, site } = world;
    const other = await site.open();
    const { conversation, turn, holder } = await begun(store);
    await Promise.all([
      holder.write(update(turn.id, 'a'), update(turn.id, 'b')),
      enqueue(other, conversation),
      holder.write(update(turn.id, 'c')),
      enqueue(store, conversation),
      other.setTitle(ANN, conversation, 'T', 'caller'),
    ]);
    const seqs = (await allEvents(store, conversation)).map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    expect((await store.findConversation(ANN, conversation))?.lastSeq).toBe(seqs.length);
  });

  test('a reader can continue from any number, and another handle reads the same', async () => {
    const { store, site } = world;
    const { conversation, turn, holder } = await begun(store);
    for (let i = 0; i < 10; i += 1) await holder.write(update(turn.id, `${i}`));
    const all = await allEvents(store, conversation);
    const other = await site.open();
    const read = [];
    for (let after = 0; after < all.length; after += 3)
      read.push(...(await other.events(ANN, conversation, { after, limit: 3 })));
    expect(read).toEqual(all);
  });

  test('an event of a kind that only a newer version knows keeps its number, is verified, and is published as unknown', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const payload = { n: 1, pid: 4711 };
    const newer = { kind: 'turn.reviewed', turn: turn.id, payload } as unknown as EventDraft;
    const seq = await holder.write({ write: 'event', event: newer });
    await holder.write(update(turn.id, 'later'));
    const [event, later] = await store.events(ANN, conversation, { after: seq - 1, limit: 10 });
    expect([event, later?.seq]).toEqual([expect.objectContaining({ seq, kind: 'turn.reviewed', payload }), seq + 1]);
    expect(await store.eventsBefore(ANN, conversation, { before: seq + 1, limit: 1 })).toEqual([event]);
    expect(toPublicEvent(event as ConversationEvent)).toEqual({
      ...{ conversationId: conversation, seq, turnId: turn.id, at: event?.at },
      ...{ kind: 'event.unknown', payload: { kind: 'turn.reviewed' } },
    });
    expect((await store.verify(ANN, conversation)).broken).toBeNull();
  });

  test('the writes of a commit keep their order, and its answer is the last number', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const seq = await holder.write(update(turn.id, 'one'), sending(turn.id), update(null, 'two'));
    const events = await allEvents(store, conversation);
    expect(events.slice(-3).map(({ kind, turn: of }) => [kind, of])).toEqual([
      ['turn.update', turn.id],
      ['turn.sent', turn.id],
      ['turn.update', null],
    ]);
    expect(seq).toBe(events.at(-1)?.seq);
  });

  test('the events of one turn are found without those of others', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const next = await enqueue(store, conversation);
    await holder.write(update(turn.id, 'mine'), update(null, 'nobody’s'));
    const found = await store.turnEvents(ANN, turn.id);
    expect(found.map(({ kind }) => kind)).toEqual(['turn.queued', 'turn.started', 'turn.update']);
    expect(found).toEqual((await allEvents(store, conversation)).filter((event) => event.turn === turn.id));
    expect(await store.turnEvents(ANN, next.id)).toHaveLength(1);
  });

  test('a commit that is repeated after a lost answer changes nothing and gives the same answer', async () => {
    const { store, site } = world;
    const { conversation, turn, fence } = await begun(store);
    const writes: Write[] = [update(turn.id, 'a'), sending(turn.id), ending(turn, { usage: usage(5) })];
    const first = await store.commit(fence, 1, writes);
    await enqueue(store, conversation);
    const before = await site.contents();
    expect(await store.commit(fence, 1, writes)).toEqual({ seq: first.seq, open: 1 });
    expect(await site.contents()).toBe(before);
    expect((await store.commit(fence, 4, [update(turn.id, 'next')])).seq).toBeGreaterThan(first.seq);
  });

  test('two commits with the same counter at once are one', async () => {
    const { store } = world;
    const { conversation, turn, fence } = await begun(store);
    const before = (await allEvents(store, conversation)).length;
    const both = await Promise.all([1, 2].map(() => store.commit(fence, 1, [update(turn.id, 'a')])));
    expect(both[0]).toEqual(both[1]);
    expect(await allEvents(store, conversation)).toHaveLength(before + 1);
  });

  test('the same counter under a new epoch is a new commit', async () => {
    const { store } = world;
    const { conversation, turn, holder, fence } = await begun(store);
    await holder.write(endingUnsent(turn));
    await store.release(fence);
    const again = await begunAgain(store, conversation);
    expect(await codeOf(again.holder.write(update(again.turn.id, 'x')))).toBeNull();
    expect((await kinds(store, conversation)).at(-1)).toBe('turn.update');
  });

  test('a commit of which one write is refused writes nothing at all', async () => {
    const { store, site } = world;
    const { turn, holder } = await begun(store);
    const before = await site.contents();
    const fine = [update(turn.id, 'a'), opening(session(), turn.id), sending(turn.id)];
    expect(await codeOf(holder.write(...fine, endingUnsent(turn)))).toBe('invalid');
    expect(await codeOf(holder.write(...fine, update(fresh('no-such-turn'), 'b')))).toBe('not_found');
    expect(await site.contents()).toBe(before);
    expect(await codeOf(holder.write(...fine))).toBeNull();
  });

  test('a refused verb does not affect others at the same time', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const results = await Promise.allSettled([
      holder.write(update(turn.id, 'a')),
      enqueue(store, fresh('nothing')),
      enqueue(store, conversation, { prompt: prompt('kept') }),
      holder.write(sending(fresh('no-such-turn'))),
      holder.write(update(turn.id, 'b')),
    ]);
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    expect((await kinds(store, conversation)).slice(-3)).toEqual(['turn.update', 'turn.queued', 'turn.update']);
  });

  test('that a turn was sent is stored with its session, position and process, and only once', async () => {
    const { store } = world;
    const { turn, holder } = await begun(store);
    const opened = session();
    const process = { kind: 'test', id: '3', label: 'process 3' };
    const sent = {
      attempt: 1,
      prompt: 'prompt-1',
      session: opened.ref,
      position: 'p',
      rung: 'new',
      delivered: null,
      process,
      at: 12,
    } as const;
    await holder.write(opening(opened), { write: 'send', turn: turn.id, sent });
    expect(await store.findTurn(ANN, turn.id)).toMatchObject({ state: 'running', sent, sessionId: opened.id });
    expect(await codeOf(holder.write(sending(turn.id)))).toBe('conflict');
  });

  test('a turn that was never begun cannot be sent or ended', async () => {
    const { store } = world;
    const { conversation, holder } = await begun(store);
    const next = await enqueue(store, conversation);
    expect(await codeOf(holder.write(sending(next.id)))).toBe('conflict');
    expect(await codeOf(holder.write(endingUnsent(next)))).toBe('conflict');
  });

  test('a turn that begins and ends in one commit cannot be sent in it', async () => {
    const { store, site } = world;
    const { conversation, turn, holder } = await begun(store);
    const next = await enqueue(store, conversation);
    await holder.write(endingUnsent(turn));
    const before = await site.contents();
    const begin = { write: 'begin', turn: next.id } as const;
    expect(await codeOf(holder.write(begin, endingUnsent(next), sending(next.id)))).toBe('conflict');
    expect(await site.contents()).toBe(before);
  });

  test('a retry within the turn makes it unsent, with one more attempt', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const failure = { code: 'agent_failed', message: 'Overloaded.' } as const;
    await holder.write(sending(turn.id), { write: 'retry', turn: turn.id, failure });
    expect(await store.findTurn(ANN, turn.id)).toMatchObject({ state: 'running', attempt: 2, sent: null });
    expect((await allEvents(store, conversation)).at(-1)).toMatchObject({
      kind: 'turn.retrying',
      payload: { n: 1, attempt: 1, failure },
    });
    await holder.write(sending(turn.id, { attempt: 2 }), ending(turn));
    expect(await store.findTurn(ANN, turn.id)).toMatchObject({ state: 'completed', attempt: 2, sent: { attempt: 2 } });
  });

  test('a turn ends exactly once', async () => {
    const { store, site } = world;
    const { conversation, turn, holder } = await begun(store);
    await holder.write(sending(turn.id), ending(turn));
    const before = await site.contents();
    for (const write of [ending(turn, { outcome: 'failed' }), sending(turn.id), retrying(turn.id)]) {
      expect(await codeOf(holder.write(write))).toBe('conflict');
    }
    expect(await site.contents()).toBe(before);
    expect((await kinds(store, conversation)).filter((kind) => kind === 'turn.ended')).toHaveLength(1);
  });

  test('the end of a turn has its outcome, and a long answer is cut in the event and complete in the record', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const text = 'word '.repeat(4000);
    const answered = record(turn, { parts: [{ type: 'text', text }] });
    await holder.write(sending(turn.id), ending(turn, { record: answered, usage: usage(7) }));
    expect(await store.findTurn(ANN, turn.id)).toMatchObject({
      state: 'completed',
      usage: usage(7),
      endedAt: 20,
      failure: null,
    });
    const ended = (await allEvents(store, conversation)).at(-1);
    if (ended?.kind !== 'turn.ended') throw new Error('The last event is not the end.');
    expect(ended.payload).toMatchObject({ n: 1, outcome: 'completed', failure: null, usage: usage(7) });
    expect(ended.payload.reply.length).toBeLessThan(5000);
    expect(ended.payload.reply.startsWith('word word')).toBe(true);
    const [stored] = await store.recordsBefore(ANN, conversation, { upTo: 1, limit: 1 });
    expect(stored?.parts).toEqual([{ type: 'text', text }]);
  });

  test('turns that were sent and have ended are the history; those that were never sent are not', async () => {
    const { store } = world;
    const { conversation, turn, holder, fence } = await begun(store);
    await holder.write(endingUnsent(turn));
    expect(await store.findConversation(ANN, conversation)).toMatchObject({ head: 0, historyCount: 0 });
    const next = await enqueue(store, conversation);
    await beginNext(store, fence, [next.agent]);
    const failure = { code: 'interrupted', message: 'Lost.' } as const;
    await holder.write(sending(next.id), ending(next, { outcome: 'interrupted', failure }));
    expect(await store.findConversation(ANN, conversation)).toMatchObject({ head: 2, historyCount: 1 });
  });

  test('a turn that was sent cannot end without a record, and one that was not cannot have one', async () => {
    const { store } = world;
    const { turn, holder } = await begun(store);
    expect(await codeOf(holder.write(ending(turn)))).toBe('invalid');
    await holder.write(sending(turn.id));
    expect(await codeOf(holder.write(endingUnsent(turn)))).toBe('invalid');
    expect(await codeOf(holder.write(ending(turn, { record: record(turn, { n: 5 }) })))).toBe('invalid');
    expect(await codeOf(holder.write(ending(turn)))).toBeNull();
  });

  test('a turn of another conversation cannot be written to', async () => {
    const { store } = world;
    const [a, b] = [await begun(store), await begun(store)];
    expect(await codeOf(a.holder.write(update(b.turn.id, 'x')))).toBe('not_found');
    expect(await codeOf(a.holder.write(sending(b.turn.id)))).toBe('not_found');
    expect(await codeOf(a.holder.write(endingUnsent(b.turn)))).toBe('not_found');
  });

  test('a fence without a lease writes nothing', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const never = { conversation: id, owner: ANN, epoch: 0 };
    expect(await codeOf(store.commit(never, 1, [update(null, 'x')]))).toBe('lease_lost');
    expect(await codeOf(store.commit({ ...never, epoch: 7 }, 1, [update(null, 'x')]))).toBe('lease_lost');
  });
}

function retrying(turn: string): Write {
  return { write: 'retry', turn, failure: { code: 'agent_failed', message: 'x' } };
}

async function begunAgain(store: World['store'], conversation: string) {
  const turn = await enqueue(store, conversation);
  const process = { pid: 1, started: '1', boot: 'boot-1', namespace: 'pid-1' };
  const worker = { id: 'w2', process };
  const request = {
    worker,
    place: 'this-host',
    agents: [turn.agent],
    driver: 'worker',
    leaseMs: 1000,
    conversation,
  } as const;
  const claimed = await store.claim(request);
  if (claimed === null) throw new Error('There was nothing to claim.');
  return { turn, holder: new Holder(store, claimed.fence) };
}
