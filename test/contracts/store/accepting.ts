import { expect, test } from 'vitest';
import type { NewTurn, Onward } from '../../../src/ports/store/turns.ts';
import type { Store } from '../../../src/ports/store.ts';
import {
  AGENT,
  ANN,
  allEvents,
  BOB,
  begun,
  codeOf,
  ending,
  enqueue,
  type Holder,
  kinds,
  newTurn,
  opening,
  receipt,
  sending,
  session,
  update,
  type World,
} from './world.ts';

// A turn that is accepted, begun and sent in one commit, by the holder of its conversation.
export function accepting(world: World): void {
  test('where nothing else is open it is begun and the writes are made, in order', async () => {
    const { store, site } = world;
    const { holder, opened } = await ended(store);
    const before = (await allEvents(store, holder.fence.conversation)).length;
    const turn = newTurn(holder.fence.conversation, { requestId: 'r' });
    const accepted = await store.accept(ANN, turn, onward(holder, turn, opened.ref));
    expect(accepted).toMatchObject({ duplicate: false, written: true, turn: { n: 2, state: 'queued', attempt: 0 } });
    expect(accepted.begun).toMatchObject({ id: turn.id, n: 2, state: 'running', attempt: 1, prompt: turn.prompt });
    const added = (await allEvents(store, holder.fence.conversation)).slice(before);
    expect(added.map(({ kind, turn: of }) => [kind, of])).toEqual(
      ['turn.queued', 'turn.started', 'restore.receipt', 'turn.sent'].map((kind) => [kind, turn.id]),
    );
    expect(added[0]?.seq).toBe(accepted.seq);
    const other = await site.open();
    expect(await other.findTurn(ANN, turn.id)).toMatchObject({ state: 'running', sent: { session: opened.ref } });
    expect(await other.verify(ANN, holder.fence.conversation)).toBe(null);
    expect((await other.summary(ANN, holder.fence.conversation)).open).toBe(1);
    // Its writes have taken their counters: the next ones are new, and no repeat.
    holder.counter += 2;
    await holder.write(update(turn.id, 'Hello.'), ending(accepted.begun ?? accepted.turn, { session: opened.ref }));
    expect(await store.findTurn(ANN, turn.id)).toMatchObject({ state: 'completed' });
  });

  test('the same request again is the turn of then, and neither begun nor written again', async () => {
    const { store, site } = world;
    const { holder, opened } = await ended(store);
    const turn = newTurn(holder.fence.conversation, { requestId: 'r' });
    await store.accept(ANN, turn, onward(holder, turn, opened.ref));
    const before = await site.contents();
    const again = { ...turn, id: 'another' };
    const known = await store.accept(ANN, again, onward(holder, again, opened.ref));
    expect(known).toMatchObject({ duplicate: true, begun: null, written: false, turn: { id: turn.id } });
    const otherwise = newTurn(holder.fence.conversation, { requestId: 'r', agent: 'other' });
    expect(await codeOf(store.accept(ANN, otherwise, onward(holder, otherwise, opened.ref)))).toBe('conflict');
    expect(await site.contents()).toBe(before);
  });

  test('behind a turn that waits it is accepted, and no more', async () => {
    const { store } = world;
    const { holder, opened } = await ended(store);
    const first = await enqueue(store, holder.fence.conversation);
    const turn = newTurn(holder.fence.conversation);
    const next = onward(holder, turn, opened.ref, { n: 3 });
    expect(await store.accept(ANN, turn, next)).toMatchObject({ begun: null, written: false, turn: { n: 3 } });
    expect(await store.begin(holder.fence, [AGENT])).toMatchObject({ id: first.id });
    expect((await kinds(store, holder.fence.conversation)).slice(-1)).toEqual(['turn.started']);
  });

  test.each([
    ['another number', { n: 3 }],
    ['another agent', { agent: 'other' }],
    ['nothing', null],
  ] as const)('where %s was foreseen it is begun, and nothing is written for it', async (_, foreseen) => {
    const { store } = world;
    const { holder, opened } = await ended(store);
    const turn = newTurn(holder.fence.conversation);
    const next = onward(holder, turn, opened.ref, foreseen ?? {});
    const accepted = await store.accept(ANN, turn, foreseen === null ? { ...next, ahead: null } : next);
    expect(accepted).toMatchObject({ written: false, begun: { id: turn.id, state: 'running' } });
    expect(await store.findTurn(ANN, turn.id)).toMatchObject({ state: 'running', sent: null });
  });

  test('one whose agent is not among those of the holder is left to another', async () => {
    const { store } = world;
    const { holder, opened } = await ended(store);
    const turn = newTurn(holder.fence.conversation, { agent: 'other' });
    const next = { ...onward(holder, turn, opened.ref, { agent: 'other' }), agents: [AGENT] };
    expect(await store.accept(ANN, turn, next)).toMatchObject({ begun: null, written: false });
    expect(await store.findTurn(ANN, turn.id)).toMatchObject({ state: 'queued' });
  });

  test('under a lease that is lost it is accepted all the same, and not begun', async () => {
    const { store } = world;
    const { holder, opened } = await ended(store);
    await store.release(holder.fence);
    const turn = newTurn(holder.fence.conversation);
    expect(await store.accept(ANN, turn, onward(holder, turn, opened.ref))).toMatchObject({ begun: null });
    expect(await store.findTurn(ANN, turn.id)).toMatchObject({ state: 'queued' });
  });

  test('with a write that does not apply nothing of it is stored', async () => {
    const { store, site } = world;
    const { holder, opened } = await ended(store);
    const before = await site.contents();
    const turn = newTurn(holder.fence.conversation);
    const wrong = { ...onward(holder, turn, 'no such session') };
    expect(await codeOf(store.accept(ANN, turn, wrong))).toBe('not_found');
    const next = onward(holder, turn, opened.ref);
    expect(await codeOf(store.accept(BOB, turn, next)), 'another’s conversation').toBe('not_found');
    expect(await site.contents()).toBe(before);
  });
}

/** A conversation that is held, with one turn completed in a session. */
async function ended(store: Store) {
  const { turn, holder } = await begun(store);
  const opened = session();
  await holder.write(opening(opened, turn.id), sending(turn.id, { session: opened.ref }));
  await holder.write(ending(turn, { session: opened.ref }));
  return { holder, opened };
}

function onward(
  { fence, counter }: Holder,
  { id }: NewTurn,
  ref: string,
  foreseen: { n?: number; agent?: string } = {},
): Onward {
  const { n = 2, agent = AGENT } = foreseen;
  const told = receipt({ turn: n, rung: 'live' });
  const writes = [{ write: 'receipt', receipt: told, turn: id, session: ref }, sending(id, { session: ref })] as const;
  return { fence, counter, agents: [AGENT, 'other'], ahead: { n, agent, writes } };
}
