import { expect, test } from 'vitest';
import type { Conversation } from '../../../src/core/conversation.ts';
import { DEFAULT_RESTORE } from '../../../src/core/restore/restore-settings.ts';
import type { Turn } from '../../../src/core/turn/turn.ts';
import { inPages } from '../../../src/flow/pages.ts';
import {
  ANN,
  allEvents,
  asking,
  BOB,
  begun,
  claim,
  claimRequest,
  codeOf,
  ending,
  enqueue,
  Holder,
  kinds,
  newConversation,
  nextTurn,
  prompt,
  record,
  sending,
  spec,
  usage,
  type World,
  worker,
} from './world.ts';

const LOST = { code: 'agent_failed', message: 'It failed.' } as const;

export function conversations(world: World): void {
  test('a conversation is created with everything that the caller set, and its first event shows it', async () => {
    const { store } = world;
    const restore = { ...DEFAULT_RESTORE, policy: 'auto', lastTurns: 4 } as const;
    const set = spec({
      key: 'ticket-1',
      title: 'Named',
      agent: 'other',
      cwd: '/somewhere',
      place: 'any',
      restore,
      project: '/repository',
    });
    const { conversation, created } = await store.ensureConversation(ANN, set);
    expect(created).toBe(true);
    expect(conversation).toMatchObject({ ...set, owner: ANN, titleSource: 'caller', parent: null });
    expect(conversation).toMatchObject({ head: 0, historyCount: 0, lastSeq: 1 });
    expect(await allEvents(store, set.id)).toMatchObject([
      {
        seq: 1,
        kind: 'conversation.created',
        turn: null,
        payload: { key: 'ticket-1', agent: 'other', cwd: '/somewhere' },
      },
    ]);
  });

  test('the same key gives the same conversation, and changes nothing', async () => {
    const { store, site } = world;
    const first = await store.ensureConversation(ANN, spec({ key: 'k', agent: 'a' }));
    const before = await site.contents();
    const second = await store.ensureConversation(ANN, spec({ key: 'k', agent: 'b', title: 'Other' }));
    expect(second).toEqual({ conversation: first.conversation, created: false });
    expect(await site.contents()).toBe(before);
  });

  test('several callers that create the same key at once create one conversation', async () => {
    const { store, site } = world;
    const other = await site.open();
    for (const key of ['a', 'b', 'c']) {
      const made = await Promise.all(
        [store, other, store, other].map((at) => at.ensureConversation(ANN, spec({ key }))),
      );
      expect(made.filter(({ created }) => created)).toHaveLength(1);
      expect(new Set(made.map(({ conversation }) => conversation.id)).size).toBe(1);
    }
  });

  test('without a key a new conversation is always created', async () => {
    const { store } = world;
    const [a, b] = [await newConversation(store), await newConversation(store)];
    expect(a).not.toBe(b);
  });

  test('an id that is taken is a conflict, for every owner', async () => {
    const { store } = world;
    const taken = spec();
    await store.ensureConversation(ANN, taken);
    expect(await codeOf(store.ensureConversation(ANN, taken))).toBe('conflict');
    expect(await codeOf(store.ensureConversation(BOB, taken))).toBe('conflict');
  });

  test('two owners may use the same key', async () => {
    const { store } = world;
    const a = await newConversation(store, { key: 'k' }, ANN);
    const b = await newConversation(store, { key: 'k' }, BOB);
    expect((await store.findConversation(ANN, 'k'))?.id).toBe(a);
    expect((await store.findConversation(BOB, 'k'))?.id).toBe(b);
  });

  test('a conversation is found by id and by key, and an id wins over a key that looks the same', async () => {
    const { store } = world;
    const first = await newConversation(store, { key: 'k' });
    const second = await newConversation(store, { key: first });
    expect((await store.findConversation(ANN, 'k'))?.id).toBe(first);
    expect((await store.findConversation(ANN, first))?.id).toBe(first);
    expect((await store.findConversation(ANN, second))?.key).toBe(first);
    expect(await store.findConversation(ANN, 'nothing')).toBeNull();
  });

  test('the list begins with the last change, and pages neither repeat nor skip one, also at equal times', async () => {
    const { store, site } = world;
    const ids: string[] = [];
    for (let i = 0; i < 5; i += 1) ids.push(await newConversation(store));
    site.pass(10);
    const newest = await newConversation(store);
    site.pass(10);
    await enqueue(store, ids[1] as string);
    const listed: string[] = [];
    for (let page = await store.listConversations(ANN, { limit: 2 }); page.length > 0; ) {
      listed.push(...page.map(({ id }) => id));
      const { updatedAt, id } = page.at(-1) as (typeof page)[number];
      page = await store.listConversations(ANN, { limit: 2, before: { updatedAt, id } });
    }
    expect(listed.slice(0, 2)).toEqual([ids[1], newest]);
    expect(listed).toHaveLength(6);
    expect(new Set(listed)).toEqual(new Set([...ids, newest]));
  });

  test('its state, last agent, open questions and usage follow its turns', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const now = async () => {
      const { state, lastAgent, openPermissions, usage: sum } = (await store.findConversation(ANN, id)) as Conversation;
      return [state, lastAgent, openPermissions, sum.inputTokens];
    };
    expect(await now()).toEqual(['idle', 'scripted', 0, 0]);
    await enqueue(store, id);
    expect(await now()).toEqual(['queued', 'scripted', 0, 0]);
    const { fence, turn } = await claim(store, { conversation: id });
    const holder = new Holder(store, fence);
    const first = turn as Turn;
    expect(await now()).toEqual(['running', 'scripted', 0, 0]);
    const second = await enqueue(store, id, { agent: 'other' });
    expect(await now()).toEqual(['running', 'other', 0, 0]);
    const [a, b] = [asking(first.id), asking(first.id)];
    await holder.write(sending(first.id), a, b);
    expect(await now()).toEqual(['asks', 'other', 2, 0]);
    await store.answer(ANN, a.permission.id, 'yes', 'ann');
    expect(await now()).toEqual(['asks', 'other', 1, 0]);
    await holder.write({ write: 'deny', turn: first.id, permission: b.permission.id, reason: 'x' });
    expect(await now()).toEqual(['running', 'other', 0, 0]);
    await holder.write(asking(first.id), { write: 'retry', turn: first.id, failure: LOST });
    expect(await now()).toEqual(['running', 'other', 0, 0]);
    await holder.write(sending(first.id, { attempt: 2 }), asking(first.id));
    const failed = record(first, { outcome: 'failed', failure: LOST });
    await holder.write(ending(first, { outcome: 'failed', failure: LOST, record: failed, usage: usage(7) }));
    expect(await now()).toEqual(['queued', 'other', 0, 7]);
    await store.requestCancel(ANN, second.id, 'ann');
    expect(await now()).toEqual(['idle', 'other', 0, 7]);
    for (const [end, state] of [
      [{ outcome: 'failed', failure: LOST }, 'failed'],
      [{ outcome: 'failed', failure: { code: 'restore_failed', message: 'x' } }, 'unrestored'],
      [{ outcome: 'interrupted', failure: { code: 'agent_died', message: 'x' } }, 'interrupted'],
      [{ outcome: 'completed', failure: null }, 'idle'],
    ] as const) {
      await enqueue(store, id, { agent: 'scripted' });
      const next = (await nextTurn(store, fence)) as Turn;
      await holder.write(sending(next.id), ending(next, { ...end, record: record(next, end) }));
      expect(await now()).toEqual([state, 'scripted', 0, 7]);
    }
    // The turns of a fork ended elsewhere, so they do not count.
    expect(await store.fork(ANN, id, first.n, spec({ agent: 'other' }))).toMatchObject({
      ...{ state: 'idle', lastAgent: 'scripted', usage: { inputTokens: 0 } },
    });
  });

  test('a turn that a lost worker left unsent is queued again, and so is its conversation', async () => {
    const { store, site } = world;
    const { conversation, holder, turn } = await begun(store);
    await holder.write(asking(turn.id));
    site.pass(2_000);
    await store.claim(claimRequest({ conversation, withoutTurn: true, worker: worker('worker-2', 102) }));
    expect(await store.findConversation(ANN, conversation)).toMatchObject({ state: 'queued', openPermissions: 0 });
  });

  test('the list is filtered by agent, states and time of the last change, in pages, only for its owner', async () => {
    const { store, site } = world;
    const made: string[] = [];
    const add = async (agent: string, open: boolean) => {
      const id = await newConversation(store, { agent });
      if (open) await enqueue(store, id);
      made.push(id);
      site.pass(10);
    };
    for (const open of [true, false, true, false]) for (const agent of ['a', 'b']) await add(agent, open);
    await enqueue(store, await newConversation(store, { agent: 'a' }, BOB), {}, BOB);
    const start = (await store.findConversation(ANN, made[0] as string))?.updatedAt ?? 0;
    type Filter = Omit<Parameters<typeof store.listConversations>[1], 'limit' | 'before'>;
    const listed = async (filter: Filter) => {
      const found: number[] = [];
      const read = (last: Conversation | undefined) =>
        store.listConversations(ANN, { ...filter, limit: 1, ...(last && { before: last }) });
      for await (const { id } of inPages(read)) found.push(made.indexOf(id));
      const whole = await store.listConversations(ANN, { ...filter, limit: 99 });
      expect(whole.map(({ id }) => made.indexOf(id))).toEqual(found);
      return found;
    };
    expect(await listed({})).toEqual([7, 6, 5, 4, 3, 2, 1, 0]);
    expect(await listed({ agent: 'a' })).toEqual([6, 4, 2, 0]);
    expect(await listed({ states: ['queued'] })).toEqual([5, 4, 1, 0]);
    expect(await listed({ states: ['asks', 'queued', 'idle'] })).toEqual([7, 6, 5, 4, 3, 2, 1, 0]);
    expect(await listed({ states: ['asks', 'failed'] })).toEqual([]);
    expect(await listed({ states: [] })).toEqual([]);
    expect(await listed({ agent: 'b', states: ['idle'] })).toEqual([7, 3]);
    expect(await listed({ agent: 'c' })).toEqual([]);
    expect(await listed({ since: start + 20 })).toEqual([7, 6, 5, 4, 3, 2]);
    expect(await listed({ since: start + 20, until: start + 50 })).toEqual([4, 3, 2]);
    expect(await listed({ agent: 'a', states: ['queued', 'idle'], since: start + 20, until: start + 60 })).toEqual([
      4, 2,
    ]);
    expect(await listed({ until: start })).toEqual([]);
  });

  test('the first prompt, and only the first, gives a title to a conversation without one', async () => {
    const { store } = world;
    const id = await newConversation(store);
    await enqueue(store, id, { prompt: prompt('Fix the login\nplease') });
    await enqueue(store, id, { prompt: prompt('And the logout') });
    expect(await store.findConversation(ANN, id)).toMatchObject({ title: 'Fix the login', titleSource: 'prompt' });
    expect((await kinds(store, id)).filter((kind) => kind === 'conversation.titled')).toHaveLength(1);
  });

  test('a title from a higher source replaces a lower one, never the other way round', async () => {
    const { store } = world;
    const id = await newConversation(store);
    await enqueue(store, id, { prompt: prompt('From the prompt') });
    expect(await store.setTitle(ANN, id, 'By the agent', 'agent')).toMatchObject({ title: 'By the agent' });
    expect(await store.setTitle(ANN, id, 'Prompt again', 'prompt')).toMatchObject({ title: 'By the agent' });
    expect(await store.setTitle(ANN, id, 'Mine', 'caller')).toMatchObject({ title: 'Mine', titleSource: 'caller' });
    expect(await store.setTitle(ANN, id, 'Agent again', 'agent')).toMatchObject({ title: 'Mine' });
    expect(await store.setTitle(ANN, id, 'Mine too', 'caller')).toMatchObject({ title: 'Mine too' });
    const titles = (await allEvents(store, id)).filter((event) => event.kind === 'conversation.titled');
    expect(titles.map((event) => event.payload.title)).toEqual(['From the prompt', 'By the agent', 'Mine', 'Mine too']);
  });

  test('it can be pinned and put away: an event says so, and its place in the list stays', async () => {
    const { store, site } = world;
    const id = await newConversation(store);
    const before = await store.findConversation(ANN, id);
    expect(before).toMatchObject({ pinned: false, putAway: false });
    site.pass(10);
    expect(await store.arrange(ANN, id, { pinned: true })).toMatchObject({
      ...{ pinned: true, putAway: false, updatedAt: before?.updatedAt },
    });
    expect(await store.arrange(ANN, id, { putAway: true })).toMatchObject({ pinned: true, putAway: true });
    const { lastSeq } = await store.arrange(ANN, id, { pinned: true, putAway: true });
    expect(await store.arrange(ANN, id, { pinned: false, putAway: false })).toMatchObject({ lastSeq: lastSeq + 1 });
    const events = (await allEvents(store, id)).filter(({ kind }) => kind === 'conversation.arranged');
    expect(events.map(({ payload }) => payload)).toEqual([
      { pinned: true, putAway: false },
      { pinned: true, putAway: true },
      { pinned: false, putAway: false },
    ]);
    expect(await codeOf(store.arrange(BOB, id, { pinned: true }))).toBe('not_found');
  });

  test('a new prompt brings a conversation back that was put away, and it stays pinned', async () => {
    const { store } = world;
    const id = await newConversation(store);
    await store.arrange(ANN, id, { pinned: true, putAway: true });
    const first = await enqueue(store, id, { requestId: 'r' });
    expect(await store.findConversation(ANN, id)).toMatchObject({ pinned: true, putAway: false });
    expect((await kinds(store, id)).slice(-2)).toEqual(['turn.queued', 'conversation.arranged']);
    await enqueue(store, id);
    expect((await kinds(store, id)).filter((kind) => kind === 'conversation.arranged')).toHaveLength(2);
    // A request that is repeated is no new prompt.
    await store.arrange(ANN, id, { putAway: true });
    expect((await enqueue(store, id, { requestId: 'r' })).id).toBe(first.id);
    expect(await store.findConversation(ANN, id)).toMatchObject({ putAway: true });
    const copy = await store.importConversation(ANN, spec(), { records: [], sessions: [] });
    expect(copy).toMatchObject({ pinned: false, putAway: false });
  });

  test('the list can be filtered by what is pinned and put away, which is counted for each owner', async () => {
    const { store } = world;
    const made: string[] = [];
    for (let i = 0; i < 4; i += 1) made.push(await newConversation(store));
    const [pinned = '', away = '', both = ''] = made;
    await store.arrange(ANN, pinned, { pinned: true });
    await store.arrange(ANN, away, { putAway: true });
    await store.arrange(ANN, both, { pinned: true, putAway: true });
    const listed = async (filter: { pinned?: boolean; putAway?: boolean }) => {
      const found = await store.listConversations(ANN, { limit: 9, ...filter });
      return found.map(({ id }) => made.indexOf(id)).toSorted();
    };
    expect(await listed({})).toEqual([0, 1, 2, 3]);
    expect(await listed({ putAway: true })).toEqual([1, 2]);
    expect(await listed({ putAway: false })).toEqual([0, 3]);
    expect(await listed({ pinned: true })).toEqual([0, 2]);
    expect(await listed({ pinned: true, putAway: false })).toEqual([0]);
    expect(await store.countPutAway(ANN)).toBe(2);
    expect(await store.countPutAway(BOB)).toBe(0);
    await store.eraseConversation(ANN, both);
    expect(await store.countPutAway(ANN)).toBe(1);
  });

  test('after close every verb is refused as closed, and earlier calls are still done', async () => {
    const { store, site } = world;
    const id = await newConversation(store);
    const accepted = enqueue(store, id);
    await store.close();
    expect((await accepted).n).toBe(1);
    expect(await codeOf(store.findConversation(ANN, id))).toBe('closed');
    expect(await codeOf(enqueue(store, id))).toBe('closed');
    await store.close();
    const again = await site.open();
    expect(await again.turns(ANN, id, { after: 0, limit: 9 })).toHaveLength(1);
  });
}
