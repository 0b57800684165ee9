import { expect, test } from 'vitest';
import type { Budget } from '../../../src/core/limits/budget.ts';
import { NO_USAGE } from '../../../src/core/turn/usage.ts';
import {
  ANN,
  BOB,
  begun,
  codeOf,
  ending,
  enqueue,
  newConversation,
  newTurn,
  opening,
  receipt,
  runTurn,
  sending,
  session,
  spec,
  usage,
  WORKER,
  type World,
} from './world.ts';

export function totals(world: World): void {
  test('the summary of a new conversation is empty', async () => {
    const { store } = world;
    const id = await newConversation(store, { key: 'k', title: 'T' });
    expect(await store.summary(ANN, id)).toEqual({
      ...{ conversation: id, key: 'k', title: 'T', contexts: 0, first: null, last: null },
      ...{ sessions: 0, changes: 0, open: 0, lock: null, usage: NO_USAGE },
    });
  });

  test('the summary counts completed turns, sessions, moves between them, open turns and cost', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const [a, b] = [session(), session()];
    const failure = { code: 'agent_failed', message: 'x' } as const;
    await holder.write(
      opening(a),
      sending(turn.id),
      ending(turn, { outcome: 'failed', failure, session: a.ref, usage: usage(1) }),
    );
    await runTurn(store, holder, {}, { session: a.ref, usage: usage(10) });
    await holder.write(opening(b));
    await runTurn(store, holder, {}, { session: b.ref, usage: usage(100) });
    await runTurn(store, holder, {}, { session: null });
    await runTurn(store, holder, {}, { session: a.ref });
    await enqueue(store, conversation);
    const restoring = {
      write: 'receipt',
      receipt: receipt({ usage: usage(1000) }),
      turn: null,
      session: null,
    } as const;
    await holder.write(restoring);
    expect(await store.summary(ANN, conversation)).toMatchObject({
      ...{ contexts: 4, first: { n: 2, at: 20 }, last: { n: 5, at: 20 }, sessions: 2, changes: 2, open: 1 },
      usage: { inputTokens: 1111, outputTokens: 2222, costMicros: 3333, modelCalls: 4 },
    });
  });

  test('the summary shows who holds the conversation and for how long, until the lease has expired', async () => {
    const { store, site } = world;
    const { conversation } = await begun(store);
    site.pass(400);
    const lock = { holder: WORKER.id, process: WORKER.process, epoch: 1, expiresIn: 600 };
    expect((await store.summary(ANN, conversation)).lock).toEqual(lock);
    site.pass(600);
    expect((await store.summary(ANN, conversation)).lock).toBeNull();
  });

  test('usage is summed by day and agent, newest day first, for turns and restores together', async () => {
    const { store, site } = world;
    const { turn, holder } = await begun(store);
    await holder.write(sending(turn.id), ending(turn, { usage: usage(1) }));
    await runTurn(store, holder, {}, { usage: usage(10) });
    await runTurn(store, holder, { agent: 'other' }, { usage: usage(5) });
    site.jump(86_400_000);
    const write = {
      write: 'receipt',
      receipt: receipt({ turn: 4, usage: usage(2) }),
      turn: null,
      session: null,
    } as const;
    await holder.write(write);
    await holder.write(write);
    const rows = await store.usage(ANN);
    const [newest, oldest] = [rows[0]?.day as string, rows[2]?.day as string];
    expect(Date.parse(newest) - Date.parse(oldest)).toBe(86_400_000);
    expect(rows).toEqual([
      { day: newest, agent: turn.agent, turns: 0, usage: usage(2) },
      { day: oldest, agent: 'other', turns: 1, usage: usage(5) },
      { day: oldest, agent: turn.agent, turns: 2, usage: { ...usage(11), modelCalls: 2 } },
    ]);
    expect(await store.usage(ANN, { since: newest })).toHaveLength(1);
  });

  test('the spending of a day counts for the conversation and for its owner, and starts at zero each day', async () => {
    const { store, site } = world;
    const nothing = { costMicros: 0, tokens: 0, unpricedAgents: [] };
    const [a, b] = [await begun(store), await begun(store)];
    expect(await store.spending(ANN, a.conversation)).toEqual({ conversation: nothing, owner: nothing });
    await a.holder.write(sending(a.turn.id), ending(a.turn, { usage: usage(1) }));
    await runTurn(store, a.holder, {}, { usage: usage(10) });
    const free = { ...usage(1), costMicros: 0, unreportedCosts: 1 };
    await b.holder.write(sending(b.turn.id), ending(b.turn));
    await runTurn(store, b.holder, { agent: 'other' }, { usage: free });
    const ofA = { costMicros: 33, tokens: 33, unpricedAgents: [] };
    expect(await store.spending(ANN, a.conversation)).toEqual({
      ...{ conversation: ofA, owner: { costMicros: 33, tokens: 36, unpricedAgents: ['other'] } },
    });
    const ofB = { ...nothing, tokens: 3, unpricedAgents: ['other'] };
    expect((await store.spending(ANN, b.conversation)).conversation).toEqual(ofB);
    site.jump(86_400_000);
    expect(await store.spending(ANN, a.conversation)).toMatchObject({ conversation: nothing, owner: nothing });
    await runTurn(store, a.holder, {}, { usage: usage(2) });
    expect(await store.spending(ANN, a.conversation)).toMatchObject({
      ...{ conversation: { costMicros: 6, tokens: 6 }, owner: { costMicros: 6, tokens: 6 } },
    });
    expect(await codeOf(store.spending(BOB, a.conversation))).toBe('not_found');
  });

  test('turns of unknown cost are counted in every total, with their tokens, and make no agent one without prices', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const cutOff = { ...usage(2), costMicros: 0, unknownCosts: 1 };
    await holder.write(sending(turn.id), ending(turn, { usage: cutOff }));
    await runTurn(store, holder, {}, { usage: usage(10) });
    await runTurn(store, holder, {}, { usage: cutOff });
    const sum = { ...usage(14), costMicros: 30, unknownCosts: 2, modelCalls: 3 };
    expect((await store.summary(ANN, conversation)).usage).toEqual(sum);
    expect((await store.findConversation(ANN, conversation))?.usage).toEqual(sum);
    expect((await store.usage(ANN)).map((row) => row.usage)).toEqual([sum]);
    expect((await store.spending(ANN, conversation)).owner).toEqual({ costMicros: 30, tokens: 42, unpricedAgents: [] });
    expect((await store.findTurn(ANN, turn.id))?.usage).toEqual(cutOff);
  });

  test('a conversation can have its own limit, and a caller can change it', async () => {
    const { store } = world;
    const limit = { costMicros: 2_000_000, tokens: null };
    const id = await newConversation(store, { limitPerDay: limit });
    expect((await store.findConversation(ANN, id))?.limitPerDay).toEqual(limit);
    expect((await store.setLimitPerDay(ANN, id, null)).limitPerDay).toBeNull();
    expect(await codeOf(store.setLimitPerDay(BOB, id, null))).toBe('not_found');
  });

  test('a turn is refused when the limit of the day is reached, but not the repetition of an accepted one', async () => {
    const { store, site } = world;
    const { conversation, turn, holder } = await begun(store);
    const nothing = { costMicros: null, tokens: null };
    const tokens = (most: number) => ({ costMicros: null, tokens: most });
    const submit = (owner: Budget, request?: string) =>
      store.enqueue(
        ANN,
        newTurn(conversation, { requestId: request ?? null, perDay: { conversation: nothing, owner } }),
      );
    const first = await submit(tokens(3), 'once');
    await holder.write(sending(turn.id), ending(turn, { usage: usage(1) }));
    expect(await codeOf(submit(tokens(3)))).toBe('over_budget');
    expect((await submit(tokens(3), 'once')).turn.id).toBe(first.turn.id);
    await submit(tokens(4));
    await store.setLimitPerDay(ANN, conversation, tokens(3));
    expect(await codeOf(submit(tokens(4)))).toBe('over_budget');
    expect(await codeOf(enqueue(store, conversation))).toBe(null);
    // A first prompt counts for its owner.
    const creates = spec();
    const perDay = { conversation: nothing, owner: tokens(3) };
    expect(await codeOf(store.enqueue(ANN, newTurn(creates.id, { creates, perDay })))).toBe('over_budget');
    expect(await store.findConversation(ANN, creates.id)).toBeNull();
    site.jump(86_400_000);
    await submit(tokens(3));
  });
}
