import { expect, test } from 'vitest';
import type { Write } from '../../../src/ports/store/writes.ts';
import {
  ANN,
  allEvents,
  asking,
  begun,
  claim,
  codeOf,
  ending,
  fresh,
  kinds,
  sending,
  type World,
  worker,
} from './world.ts';

export function permissions(world: World): void {
  test('a question makes the turn wait, and other handles can read it with all of its details', async () => {
    const { store, site } = world;
    const { conversation, turn, holder } = await begun(store);
    const write = asking(turn.id);
    await holder.write(write);
    expect((await store.findTurn(ANN, turn.id))?.state).toBe('waiting');
    const seen = await (await site.open()).findPermission(ANN, write.permission.id);
    expect(seen).toMatchObject({ ...write.permission, conversation, turn: turn.id, state: 'open' });
    expect(seen).toMatchObject({ optionId: null, answeredBy: null, endedAt: null });
    const { id, title, toolCall, options } = write.permission;
    expect((await allEvents(store, conversation)).at(-1)).toMatchObject({
      kind: 'permission.asked',
      turn: turn.id,
      payload: { id, title, toolCall, options },
    });
  });

  test('the first answer wins, and the turn continues', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const write = asking(turn.id);
    const { id } = write.permission;
    await holder.write(write);
    expect(await store.answer(ANN, id, 'yes', 'ann@desk', 'phone')).toMatchObject({
      ...{ state: 'answered', optionId: 'yes', answeredBy: 'ann@desk', answeredFrom: 'phone' },
    });
    await expect(store.answer(ANN, id, 'no', 'late')).rejects.toMatchObject({
      code: 'conflict',
      message: 'The permission was already answered: "Yes", by ann@desk, from the phone.',
    });
    expect(await store.findPermission(ANN, id)).toMatchObject({ optionId: 'yes', answeredFrom: 'phone' });
    expect((await store.findTurn(ANN, turn.id))?.state).toBe('running');
    expect((await allEvents(store, conversation)).at(-1)).toMatchObject({
      kind: 'permission.answered',
      turn: turn.id,
      payload: { id, optionId: 'yes', by: 'ann@desk', from: 'phone' },
    });
  });

  test('of several answers at the same time, by several handles, one is accepted', async () => {
    const { store, site } = world;
    const other = await site.open();
    const { turn, holder } = await begun(store);
    const write = asking(turn.id);
    await holder.write(write);
    const answers = [store, other, store, other].map((at, i) =>
      at.answer(ANN, write.permission.id, 'no', `person-${i}`),
    );
    const codes = await Promise.all(answers.map(codeOf));
    expect(codes.toSorted()).toEqual(['conflict', 'conflict', 'conflict', null]);
  });

  test('an option that was not offered is invalid, and the question stays open', async () => {
    const { store, site } = world;
    const { turn, holder } = await begun(store);
    const write = asking(turn.id);
    await holder.write(write);
    const before = await site.contents();
    expect(await codeOf(store.answer(ANN, write.permission.id, 'perhaps', 'x'))).toBe('invalid');
    expect(await codeOf(store.answer(ANN, fresh('unknown'), 'yes', 'x'))).toBe('not_found');
    expect(await site.contents()).toBe(before);
  });

  test('a turn with two questions waits for both', async () => {
    const { store } = world;
    const { turn, holder } = await begun(store);
    const [a, b] = [asking(turn.id), asking(turn.id)];
    await holder.write(a, b);
    await store.answer(ANN, a.permission.id, 'yes', 'x');
    expect((await store.findTurn(ANN, turn.id))?.state).toBe('waiting');
    await holder.write(denying(b));
    expect((await store.findTurn(ANN, turn.id))?.state).toBe('running');
  });

  test('a denied question accepts no answer, and has the reason', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const write = asking(turn.id);
    await holder.write(write, denying(write));
    expect(await store.findPermission(ANN, write.permission.id)).toMatchObject({
      ...{ state: 'denied', optionId: null, reason: 'nobody answered' },
    });
    expect(await codeOf(store.answer(ANN, write.permission.id, 'yes', 'late'))).toBe('conflict');
    expect((await allEvents(store, conversation)).at(-1)).toMatchObject({
      kind: 'permission.denied',
      payload: { id: write.permission.id, reason: 'nobody answered' },
    });
  });

  test('to deny a question that was already answered does nothing, and the rest of the commit is written', async () => {
    const { store, site } = world;
    const { conversation, turn, holder, fence } = await begun(store);
    const write = asking(turn.id);
    await holder.write(write);
    await store.answer(ANN, write.permission.id, 'yes', 'quick');
    const { counter } = holder;
    const seq = await holder.write(denying(write), sending(turn.id), denying(write));
    expect((await kinds(store, conversation)).slice(-2)).toEqual(['permission.answered', 'turn.sent']);
    expect((await store.findPermission(ANN, write.permission.id))?.state).toBe('answered');
    const before = await site.contents();
    const again = [denying(write), sending(turn.id), denying(write)];
    expect(await store.commit(fence, counter, again)).toMatchObject({ seq });
    expect(await site.contents()).toBe(before);
  });

  test('the end of a turn first withdraws its open questions', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const [a, b] = [asking(turn.id), asking(turn.id)];
    await holder.write(sending(turn.id), a, b);
    await store.answer(ANN, a.permission.id, 'yes', 'x');
    await holder.write(ending(turn));
    expect((await kinds(store, conversation)).slice(-2)).toEqual(['permission.withdrawn', 'turn.ended']);
    expect(await store.permissions(ANN, { open: true })).toEqual([]);
    expect((await store.findTurn(ANN, turn.id))?.state).toBe('completed');
    expect(await codeOf(store.answer(ANN, b.permission.id, 'yes', 'late'))).toBe('conflict');
  });

  test('a retry withdraws the questions of the attempt before', async () => {
    const { store } = world;
    const { turn, holder } = await begun(store);
    const write = asking(turn.id);
    const failure = { code: 'agent_failed', message: 'x' } as const;
    await holder.write(sending(turn.id), write, { write: 'retry', turn: turn.id, failure });
    expect((await store.findPermission(ANN, write.permission.id))?.state).toBe('withdrawn');
    expect((await store.findTurn(ANN, turn.id))?.state).toBe('running');
  });

  test.each([false, true])('a takeover withdraws the questions of a turn; sent: %s', async (sent) => {
    const { store, site } = world;
    const { turn, holder } = await begun(store);
    const write = asking(turn.id);
    await holder.write(...(sent ? [sending(turn.id)] : []), write);
    site.pass(1000);
    const taken = await claim(store, { worker: worker('w2', 2) });
    expect(sent ? taken.unfinished : taken.turn).toMatchObject({ id: turn.id, state: 'running' });
    expect((await store.findTurn(ANN, turn.id))?.state).toBe('running');
    expect((await store.findPermission(ANN, write.permission.id))?.state).toBe('withdrawn');
  });

  test('a question accepts no answer when its conversation was released in the middle of the turn', async () => {
    const { store, site } = world;
    const { turn, holder, fence } = await begun(store);
    const write = asking(turn.id);
    await holder.write(sending(turn.id), write);
    // An expired lease is still held, until another worker takes it.
    site.pass(1000);
    const other = asking(turn.id);
    await holder.write(other);
    await store.answer(ANN, other.permission.id, 'yes', 'x');
    await store.release(fence);
    const before = await site.contents();
    expect(await codeOf(store.answer(ANN, write.permission.id, 'yes', 'x'))).toBe('conflict');
    expect(await site.contents()).toBe(before);
  });

  test('questions are listed by conversation and state, oldest first', async () => {
    const { store } = world;
    const [a, b] = [await begun(store), await begun(store)];
    const [a1, a2, b1] = [asking(a.turn.id), asking(a.turn.id), asking(b.turn.id)];
    await a.holder.write(a1, a2);
    await b.holder.write(b1);
    await store.answer(ANN, a1.permission.id, 'no', 'x');
    const ids = async (filter: Parameters<typeof store.permissions>[1]) =>
      (await store.permissions(ANN, filter)).map(({ id }) => id);
    const [ida1, ida2, idb1] = [a1, a2, b1].map(({ permission }) => permission.id);
    expect(await ids({})).toEqual([ida1, ida2, idb1]);
    expect(await ids({ open: true })).toEqual([ida2, idb1]);
    expect(await ids({ open: false })).toEqual([ida1]);
    expect(await ids({ conversation: a.conversation })).toEqual([ida1, ida2]);
    expect(await ids({ conversation: a.conversation, open: true })).toEqual([ida2]);
    expect(await ids({ turn: a.turn.id })).toEqual([ida1, ida2]);
    expect(await ids({ turn: b.turn.id, open: true })).toEqual([idb1]);
    expect(await store.openPermissions(ANN, a.conversation)).toEqual([ida2]);
    expect(await store.openPermissions(ANN, b.conversation)).toEqual([idb1]);
  });

  test('the id of a question can be used once', async () => {
    const { store } = world;
    const { turn, holder } = await begun(store);
    const write = asking(turn.id);
    await holder.write(write);
    expect(await codeOf(holder.write(write))).toBe('conflict');
  });
}

function denying({ turn, permission }: ReturnType<typeof asking>): Write {
  return { write: 'deny', turn, permission: permission.id, reason: 'nobody answered' };
}
