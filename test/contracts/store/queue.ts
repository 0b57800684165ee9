import { expect, test } from 'vitest';
import type { Turn } from '../../../src/core/turn/turn.ts';
import type { Requeue } from '../../../src/ports/store/turns.ts';
import type { Store } from '../../../src/ports/store.ts';
import { Random, seedOfRun } from '../../faults/harness/random.ts';
import { added, claimTask } from './task-world.ts';
import {
  ANN,
  allEvents,
  BOB,
  begun,
  claim,
  claimRequest,
  codeOf,
  ending,
  enqueue,
  fresh,
  Holder,
  newConversation,
  nextTurn,
  prompt,
  record,
  sending,
  type World,
} from './world.ts';

const ALL = { after: 0, limit: 999 };
/** How often a worker and a caller race, and how often the caller changes the queue each time. */
const ROUNDS = process.env.THROUGHLINE_LONG === '1' ? 200 : 50;
const STEPS = 3;

/** `b!`: with a new prompt; `b-`: dropped. The name of a turn is also its prompt. */
function change(conversation: string, turns: Readonly<Record<string, string>>, wanted: string): Requeue {
  const changes = wanted.split(' ').filter(Boolean);
  return {
    conversation,
    changes: changes.map((word) => ({
      turn: turns[word.charAt(0)] ?? word,
      id: fresh('turn'),
      ...(word.endsWith('!') && { prompt: prompt(word) }),
      ...(word.endsWith('-') && { drop: true }),
    })),
    requestId: null,
    by: 'somebody',
  };
}

async function queueOf(store: Store, conversation: string): Promise<string> {
  const queued = await store.queued(ANN, conversation, ALL);
  return queued.map(({ prompt: [block] }) => (block?.type === 'text' ? block.text : '?')).join(' ');
}

/** A conversation with queued turns `a`, `b` and so on. */
async function queued(store: Store, names = 'a b c', conversation?: string) {
  const id = conversation ?? (await newConversation(store));
  const turns: Record<string, string> = {};
  for (const name of names.split(' ')) turns[name] = (await enqueue(store, id, { prompt: prompt(name) })).id;
  return { id, turns };
}

export function queue(world: World): void {
  test.each([
    ['a b c', 'a b c', 0],
    ['a b! c', 'a b! c', 2],
    ['c a b', 'c a b', 2],
    ['b c a', 'b c a', 1],
    ['a b- c', 'a c', 1],
    ['c! b- a', 'c! a', 3],
    ['a- b- c-', '', 3],
  ])('the queue a b c as %s is %s, and %i turns end', async (wanted, after, count) => {
    const { store } = world;
    const { id, turns } = await queued(store);
    const before = await store.turns(ANN, id, ALL);
    const seen = await allEvents(store, id);
    const result = await store.requeue(ANN, change(id, turns, wanted));
    expect(await queueOf(store, id)).toBe(after);
    expect(result.cancelled).toHaveLength(count);
    const now = await store.turns(ANN, id, ALL);
    // Numbers, request ids and events never change.
    expect(now.slice(0, 3).map(({ id: turn, n, requestId }) => [turn, n, requestId])).toEqual(
      before.map(({ id: turn, n, requestId }) => [turn, n, requestId]),
    );
    expect((await allEvents(store, id)).slice(0, seen.length)).toEqual(seen);
    expect(now.map(({ n }) => n)).toEqual(now.map((_, index) => index + 1));
    expect(result.queue.map(({ turnId }) => turnId)).toEqual(
      (await store.queued(ANN, id, ALL)).map(({ id: turn }) => turn),
    );
    for (const { turnId, replacedBy } of result.cancelled) {
      const old = now.find((turn) => turn.id === turnId);
      expect(old).toMatchObject({ state: 'cancelled', replacedBy, replaces: null, cancelRequested: true, sent: null });
      const taker = now.find((turn) => turn.id === replacedBy);
      expect(taker?.replaces ?? null).toBe(replacedBy === null ? null : turnId);
    }
    expect(await store.findConversation(ANN, id)).toMatchObject({ open: result.queue.length, head: 0 });
    expect((await store.verify(ANN, id)).broken).toBeNull();
  });

  test('the events show who changed it, which turns ended and which replaced them, in order', async () => {
    const { store } = world;
    const { id, turns } = await queued(store, 'a b');
    const { lastSeq } = (await store.findConversation(ANN, id)) ?? { lastSeq: 0 };
    const { queue: after } = await store.requeue(ANN, change(id, turns, 'a! b-'));
    const events = await store.events(ANN, id, { ...ALL, after: lastSeq });
    const replacedBy = after[0]?.turnId;
    expect(events).toMatchObject([
      { kind: 'turn.cancel_requested', turn: turns.a, payload: { n: 1, by: 'somebody' } },
      { kind: 'turn.ended', turn: turns.a, payload: { n: 1, outcome: 'cancelled', replacedBy } },
      { kind: 'turn.cancel_requested', turn: turns.b },
      { kind: 'turn.ended', turn: turns.b, payload: { n: 2, outcome: 'cancelled', replacedBy: null } },
      {
        kind: 'turn.queued',
        turn: replacedBy,
        payload: { n: 3, replaces: turns.a, requestId: null, by: 'somebody', preview: 'a!' },
      },
    ]);
  });

  test('a turn that replaces another has its agent, options and retryOf, and its prompt word for word', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    await holder.write(sending(turn.id), ending(turn, { record: record(turn) }));
    const options = { permissions: 'deny', restore: { lastTurns: 3 }, deliverTo: '#x', newSession: 'mine' } as const;
    const long = [{ type: 'text', text: 'ä'.repeat(50_000) }] as const;
    const set = { agent: 'other', options, prompt: long, retryOf: turn.id, requestId: 'r1' };
    const old = await enqueue(store, conversation, set);
    const last = await enqueue(store, conversation);
    await store.requeue(ANN, change(conversation, { a: old.id, b: last.id }, 'b a'));
    const now = (await store.queued(ANN, conversation, ALL)).at(-1);
    expect(now).toMatchObject({ agent: 'other', options, prompt: long, retryOf: turn.id, requestId: null, attempt: 0 });
    expect(await store.enqueue(ANN, { ...set, id: 'x', conversation, defaultAgent: null })).toMatchObject({
      duplicate: true,
      turn: { id: old.id, state: 'cancelled', replacedBy: now?.id },
    });
  });

  test('a replaced turn is not pending, but its replacement is; a dropped one is until it is delivered', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const [a, b] = [
      await enqueue(store, id, { options: { deliverTo: '#a' } }),
      await enqueue(store, id, { options: { deliverTo: '#b' } }),
    ];
    const { queue: after } = await store.requeue(ANN, change(id, { a: a.id, b: b.id }, 'a! b-'));
    const pending = async () => (await store.pending(ANN, { limit: 9 })).map(({ turn }) => turn.id);
    expect(await pending()).toEqual([b.id, after[0]?.turnId]);
    const replaced = await store.setDelivered(ANN, a.id);
    expect(replaced).toMatchObject({ id: a.id, replacedBy: after[0]?.turnId });
    expect(replaced).not.toHaveProperty('delivered');
    expect(await store.setDelivered(ANN, b.id)).toMatchObject({ delivered: true, replacedBy: null });
    expect(await pending()).toEqual([after[0]?.turnId]);
  });

  test('a repeated change gives the same result and changes nothing; another one with its id is a conflict', async () => {
    const { store, site } = world;
    const { id, turns } = await queued(store);
    const asked = { ...change(id, turns, 'c a! b-'), requestId: 'r' };
    const result = await store.requeue(ANN, asked);
    await enqueue(store, id);
    const contents = await site.contents();
    const again = { ...change(id, turns, 'c a! b-'), requestId: 'r' };
    expect(await (await site.open()).requeue(ANN, again)).toEqual({ ...result, duplicate: true });
    expect(await codeOf(store.requeue(ANN, { ...change(id, turns, 'c a b'), requestId: 'r' }))).toBe('conflict');
    expect(await site.contents()).toBe(contents);
  });

  test('a change with other turns than the queued ones is refused with the differences, and changes nothing', async () => {
    const { store, site } = world;
    const { conversation, turn } = await begun(store);
    const { turns } = await queued(store, 'a b', conversation);
    await store.requestCancel(ANN, turns.b ?? '', 'x');
    const other = await enqueue(store, await newConversation(store));
    const contents = await site.contents();
    const message = async (wanted: string) =>
      store.requeue(ANN, change(conversation, { ...turns, r: turn.id, o: other.id }, wanted)).catch((error) => error);
    expect(await message('a b')).toMatchObject({
      code: 'conflict',
      message: 'The queue differs from the list: turn 3 is cancelled. Nothing was changed.',
    });
    expect((await message('r a!')).message).toContain('turn 1 is running');
    expect((await message('')).message).toContain('turn 2 is queued and not in the list');
    expect(await message('a o')).toMatchObject({ code: 'not_found' });
    expect(await message('a nothing')).toMatchObject({ code: 'not_found' });
    expect(await codeOf(store.requeue(BOB, change(conversation, turns, 'a')))).toBe('not_found');
    expect(await site.contents()).toBe(contents);
  });

  test('a turn of a task cannot be changed or moved; turns after it can', async () => {
    const { store } = world;
    const [task] = await added(store, {});
    await claimTask(store);
    const id = await newConversation(store);
    const own = await enqueue(store, id, { requestId: `task/${task.id}/1.1` });
    const { turns } = await queued(store, 'a b', id);
    const all = { ...turns, t: own.id };
    for (const wanted of ['t- a b', 't! a b', 'a t b']) {
      expect(await codeOf(store.requeue(ANN, change(id, all, wanted))), wanted).toBe('refused');
    }
    await store.requeue(ANN, change(id, all, 't b a!'));
    expect(await queueOf(store, id)).toBe('Say something. b a!');
    // A request id of the same form is not enough: this is not a turn of a task.
    const free = await enqueue(store, id, { requestId: 'task/nothing/1.1' });
    const queue = (await store.queued(ANN, id, ALL)).map((turn) => turn.id);
    const changes = queue.map((turn) => ({ turn, id: fresh('turn'), ...(turn === free.id && { drop: true }) }));
    await store.requeue(ANN, { conversation: id, changes, requestId: null, by: 'x' });
    expect(await store.findTurn(ANN, free.id)).toMatchObject({ state: 'cancelled' });
  });

  test('turns that wait behind a running one, or were begun and not sent before a crash, run in the new order', async () => {
    const { store, site } = world;
    const { id, turns } = await queued(store);
    await claim(store, { conversation: id });
    expect(await codeOf(store.requeue(ANN, change(id, turns, 'b c a')))).toBe('conflict');
    await store.requeue(ANN, change(id, turns, 'c b'));
    site.pass(1_001);
    const again = await claim(store, { conversation: id, withoutTurn: true });
    expect(again.turn).toBeNull();
    const names = { ...turns, b: (await store.queued(ANN, id, ALL))[2]?.id ?? '' };
    await store.requeue(ANN, change(id, names, 'c b a'));
    const run: string[] = [];
    const holder = new Holder(store, again.fence);
    for (let turn = await nextTurn(store, again.fence); turn; turn = await nextTurn(store, again.fence)) {
      run.push(turn.prompt.map((block) => (block.type === 'text' ? block.text : '')).join(''));
      await holder.write(sending(turn.id), ending(turn, { record: record(turn) }));
    }
    expect(run.join(' ')).toBe('c b a');
  });

  test('an empty queue leaves nothing to claim, and later turns can be claimed', async () => {
    const { store } = world;
    const { id, turns } = await queued(store);
    await store.requeue(ANN, change(id, turns, 'a- b- c-'));
    expect(await store.claim(claimRequest({ conversation: id }))).toMatchObject({ turn: null });
    const { id: other, turns: theirs } = await queued(store);
    await store.requeue(ANN, change(other, theirs, 'c b a'));
    expect((await claim(store)).turn).toMatchObject({ id: theirs.c });
  });

  test('replaced and dropped turns are in no history, and are erased with the conversation', async () => {
    const { store, site } = world;
    const { conversation, turn, holder } = await begun(store);
    const { turns } = await queued(store, 'secret-a secret-b', conversation);
    const names = { a: turns['secret-a'] ?? '', b: turns['secret-b'] ?? '' };
    const asked = { ...change(conversation, names, 'b- a-'), requestId: 'secret-request' };
    await store.requeue(ANN, asked);
    await holder.write(sending(turn.id), ending(turn, { record: record(turn) }));
    await store.release(holder.fence);
    expect(await store.recordsAfter(ANN, conversation, ALL)).toHaveLength(1);
    await store.eraseConversation(ANN, conversation);
    expect(await site.contents()).not.toContain('secret-');
  });

  test('a worker that takes turns while they are moved: each is run at most once, in the order of the last change', async () => {
    const { store, site } = world;
    const random = new Random(seedOfRun());
    const other = await site.open();
    let late = 0;
    for (let round = 0; round < ROUNDS; round += 1) late += await race(store, other, random);
    // About a third of the changes come too late. With none, the two would not have raced.
    expect(late).toBeGreaterThan(0);
    expect(late).toBeLessThan(ROUNDS * STEPS);
  });
}

/** A worker runs turns and a caller changes the queue, both as fast as possible. Returns how often the caller was too late. */
async function race(store: Store, other: Store, random: Random): Promise<number> {
  const { id } = await queued(store, 'a b c d');
  const { fence, turn: first } = await claim(store, { conversation: id });
  const holder = new Holder(store, fence);
  const ran: number[] = [];
  const work = async (begun: Turn | null) => {
    for (let turn = begun; turn !== null; turn = await nextTurn(store, fence)) {
      ran.push(turn.n);
      await holder.write(sending(turn.id), ending(turn, { record: record(turn) }));
    }
  };
  let late = 0;
  const steer = async () => {
    for (let step = 0; step < STEPS; step += 1) {
      const seen = await other.queued(ANN, id, ALL);
      const become = () => random.pick([{}, {}, {}, { prompt: prompt('edited') }, { drop: true }]);
      const changes = seen
        .map(({ id: turn }) => ({ turn, id: fresh('turn'), ...become(), place: random.next() }))
        .toSorted((x, y) => x.place - y.place)
        .map(({ place: _, ...change }) => change);
      const code = await codeOf(other.requeue(ANN, { conversation: id, changes, requestId: fresh('r'), by: 'x' }));
      if (code !== null) expect(code).toBe('conflict');
      late += code === null ? 0 : 1;
    }
  };
  await Promise.all([work(first), steer()]);
  await work(await nextTurn(store, fence));
  await store.release(fence);
  const turns = await store.turns(ANN, id, ALL);
  expect(turns.map(({ n }) => n)).toEqual(turns.map((_, index) => index + 1));
  // Turns that ran completed once, in order. All others ended before they began, and each replaced one has one replacement.
  expect(turns.filter(({ state }) => state === 'completed').map(({ n }) => n)).toEqual(ran);
  for (const { id: turn, state, replacedBy, attempt } of turns) {
    if (state === 'completed') expect(replacedBy).toBeNull();
    else expect([state, attempt]).toEqual(['cancelled', 0]);
    expect(turns.filter(({ replaces }) => replaces === turn)).toHaveLength(replacedBy === null ? 0 : 1);
  }
  expect(await store.findConversation(ANN, id)).toMatchObject({ open: 0 });
  return late;
}
