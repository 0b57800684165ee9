import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Share } from '../../../src/core/limits/slots.ts';
import { localProcess, type SandboxProcess } from '../../../src/core/process.ts';
import type { Turn } from '../../../src/core/turn/turn.ts';
import {
  AGENT,
  ANN,
  allEvents,
  BOB,
  beginNext,
  begun,
  claim,
  claimRequest,
  codeOf,
  ending,
  endingUnsent,
  enqueue,
  fresh,
  Holder,
  kinds,
  newConversation,
  ONE,
  opening,
  sending,
  session,
  spec,
  update,
  WORKER,
  type World,
  worker,
} from './world.ts';

export function leases(world: World): void {
  test('held conversations are listed for their owner, with the live sessions and the remaining time of the lease', async () => {
    const { store, site } = world;
    const { conversation, turn, holder, fence } = await begun(store, { key: 'k', title: 'A title' });
    const found = { conversation, key: 'k', title: 'A title', open: 1, holder: { pid: expect.any(Number) } };
    const [held] = await store.holdings(ANN, 9);
    expect(held).toMatchObject({ ...found, sessions: [] });
    expect(held?.leftMs).toBeGreaterThan(0);
    await begun(store);
    expect(await store.holdings(ANN, 9)).toHaveLength(2);
    expect(await store.holdings(ANN, 1)).toHaveLength(1);
    expect(await store.holdings(BOB, 9)).toEqual([]);
    expect([await store.countHoldings(ANN), await store.countHoldings(BOB)]).toEqual([2, 0]);
    const { id, agent, ...opened } = session();
    const closed = { ...session(), state: 'closed' } as const;
    await holder.write(opening({ id, agent, ...opened }), opening(closed), sending(turn.id));
    const living = { id, agent, openedAt: expect.any(Number), usedAt: expect.any(Number) };
    expect((await store.holdings(ANN, 9)).find((one) => one.conversation === conversation)?.sessions).toEqual([living]);
    const before = held?.leftMs ?? 0;
    site.pass(before + 5);
    const expired = (await store.holdings(ANN, 9)).find((one) => one.conversation === conversation);
    expect(expired?.leftMs).toBeLessThan(0);
    await store.release(fence);
    expect(await store.countHoldings(ANN)).toBe(1);
    expect((await store.holdings(ANN, 9)).map((one) => one.conversation)).not.toContain(conversation);
  });

  test('the store reports its size, and how long its last commits took', async () => {
    const { store } = world;
    await newConversation(store);
    const before = await store.measure();
    expect(before).toMatchObject({
      commitMs: { p50: expect.any(Number), p95: expect.any(Number), max: expect.any(Number) },
    });
    expect(before.commitMs?.max).toBeGreaterThanOrEqual(before.commitMs?.p50 ?? Number.NaN);
    expect(before.bytes + before.logBytes).toBeGreaterThan(4_096);
    const id = await newConversation(store);
    // Random, because a store may compress its data.
    await enqueue(store, id, { prompt: [{ type: 'text', text: randomBytes(150_000).toString('hex') }] });
    const after = await store.measure();
    expect(after.commits).toBe(before.commits + 2);
    expect(after.bytes).toBeGreaterThan(before.bytes + 100_000);
  });

  test('a claim begins the oldest queued turn under a new epoch', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const first = await enqueue(store, id);
    await enqueue(store, id);
    const claimed = await claim(store);
    expect(claimed.fence).toEqual({ conversation: id, owner: ANN, epoch: 1 });
    expect(claimed).toMatchObject({ conversation: { id }, unfinished: null });
    expect(claimed.turn).toMatchObject({ id: first.id, state: 'running', attempt: 1 });
    expect((await allEvents(store, id)).at(-1)).toMatchObject({
      kind: 'turn.started',
      turn: first.id,
      payload: { n: 1, attempt: 1 },
    });
    expect(await store.claim(claimRequest({ worker: worker('w2', 2) }))).toBeNull();
  });

  test('the conversation that waited longest is claimed first', async () => {
    const { store, site } = world;
    const [a, b] = [await newConversation(store), await newConversation(store)];
    await enqueue(store, b);
    site.pass(1);
    await enqueue(store, a);
    expect((await claim(store)).conversation.id).toBe(b);
    expect((await claim(store)).conversation.id).toBe(a);
  });

  test('owners take turns: first those without a running turn, after the last one, then the others in the given order', async () => {
    const { store, site } = world;
    const owners = ['ann', 'bob', 'cid', 'dan'].map((name) => fresh(name));
    const [ann, bob, cid, dan] = owners as [string, string, string, string];
    const waits = async (owner: string) => {
      site.pass(1);
      const { conversation } = await store.ensureConversation(owner, spec());
      await enqueue(store, conversation.id, {}, owner);
      return conversation.id;
    };
    // Ann has waited longest, and has most.
    for (let i = 0; i < 3; i += 1) await waits(ann);
    const ids = [await waits(bob), await waits(cid), await waits(dan)];
    const next = async (share: Share) => (await store.next(claimRequest({ share }), ONE))[0]?.owner ?? null;
    const nobody = { busy: [], full: [] };
    expect(await next({ after: '', ...nobody })).toBe(ann);
    expect(await next({ after: ann, ...nobody })).toBe(bob);
    expect(await next({ after: bob, ...nobody })).toBe(cid);
    expect(await next({ after: dan, ...nobody })).toBe(ann);
    expect(await next({ after: '', busy: [ann], full: [bob] })).toBe(cid);
    expect(await next({ after: cid, busy: [bob, ann, cid], full: [dan] })).toBe(bob);
    expect(await next({ after: '', busy: [], full: owners })).toBeNull();
    const share = { after: ann, busy: [], full: [] };
    const claimed = [await claim(store, { share }), await claim(store, { share }), await claim(store, { share })];
    expect(claimed.map(({ conversation }) => conversation.id)).toEqual(ids);
    expect(await store.next(claimRequest({ share, held: ids }), ONE)).toMatchObject([{ owner: ann }]);
  });

  test('the next conversations are those of each owner that waited longest, up to the limits', async () => {
    const { store, site } = world;
    const [ann, bob] = [fresh('ann'), fresh('bob')];
    const ids: Record<string, string[]> = { [ann]: [], [bob]: [] };
    for (const owner of [bob, ann, ann, bob, ann]) {
      site.pass(1);
      const { conversation } = await store.ensureConversation(owner, spec());
      await enqueue(store, conversation.id, {}, owner);
      ids[owner]?.push(conversation.id);
    }
    const share = { after: '', busy: [], full: [] };
    const next = async (most: { perOwner: number; all: number }) => {
      const found = await store.next(claimRequest({ share }), most);
      return found.filter(({ owner }) => owner in ids).map(({ conversation }) => conversation);
    };
    const [a = [], b = []] = [ids[ann], ids[bob]];
    expect(await next({ perOwner: 2, all: 1_000 })).toEqual([a[0], a[1], b[0], b[1]]);
    expect(await next({ perOwner: 9, all: 1_000 })).toEqual([...a, ...b]);
    const all = await store.next(claimRequest({ share }), { perOwner: 9, all: 4 });
    expect(all).toHaveLength(4);
  });

  test('a conversation that had no open turn in between waits from the time of its next turn', async () => {
    const { store, site } = world;
    const cancelled = await newConversation(store);
    await store.requestCancel(ANN, (await enqueue(store, cancelled)).id, 'someone');
    const { conversation: released, fence, holder, turn } = await begun(store);
    await holder.write(endingUnsent(turn));
    await store.release(fence);
    const waiting = [await newConversation(store), cancelled, released];
    for (const id of waiting) {
      site.pass(1);
      await enqueue(store, id);
    }
    const claimed = [await claim(store), await claim(store), await claim(store)];
    expect(claimed.map(({ conversation }) => conversation.id)).toEqual(waiting);
  });

  test('a claim without work stores nothing', async () => {
    const { store, site } = world;
    await newConversation(store);
    const before = await site.contents();
    expect(await store.claim(claimRequest())).toBeNull();
    expect(await site.contents()).toBe(before);
  });

  test('of many workers that claim one turn, one begins it', async () => {
    const { store, site } = world;
    const other = await site.open();
    await enqueue(store, await newConversation(store));
    const at = [store, other, store, other];
    const claims = await Promise.all(at.map((handle, i) => handle.claim(claimRequest({ worker: worker(`w${i}`, i) }))));
    expect(claims.filter((claimed) => claimed !== null)).toHaveLength(1);
  });

  test.each([
    ['of another place', { place: 'another-host' }, {}],
    ['of an agent it does not know', { agents: ['unknown'] }, {}],
    ['of a tracker', {}, { driver: 'tracker' }],
  ] as const)('a worker leaves alone a conversation %s, named or not', async (_what, request, set) => {
    const { store } = world;
    const id = await newConversation(store, set);
    await enqueue(store, id);
    expect(await store.claim(claimRequest(request))).toBeNull();
    expect(await store.claim(claimRequest({ ...request, conversation: id }))).toBeNull();
  });

  test('a conversation of any place is claimed everywhere', async () => {
    const { store } = world;
    const id = await newConversation(store, { place: 'any' });
    await enqueue(store, id);
    expect((await claim(store, { place: 'another-host' })).conversation.id).toBe(id);
  });

  test('a conversation moves to another place only when nobody holds it, and its last holder can write no more', async () => {
    const { store, site } = world;
    const there = { place: 'another-host', name: '/there', by: 'ann' };
    const { conversation, turn, holder, fence } = await begun(store, { cwd: '/work', project: '/repository' });
    await holder.write(opening(session()), sending(turn.id));
    await store.namePlace(claimRequest().place, '/here');
    expect(await codeOf(store.moveConversation(ANN, conversation, there))).toBe('conflict');
    expect(await codeOf(store.moveConversation(BOB, conversation, there))).toBe('not_found');
    const [held] = await store.holdings(ANN, 9);
    site.pass((held?.leftMs ?? 0) + 1);
    const moved = await store.moveConversation(ANN, conversation, there);
    expect(moved).toMatchObject({ place: 'another-host', sandbox: conversation, cwd: null, project: null });
    expect((await allEvents(store, conversation)).at(-1)).toMatchObject({
      kind: 'conversation.moved',
      payload: { from: '/here', to: '/there', by: 'ann' },
    });
    expect(await codeOf(holder.write(update(turn.id, 'late')))).toBe('lease_lost');
    expect(await store.workers(), 'it held nothing else').toEqual([]);
    expect(await store.moveConversation(ANN, conversation, there), 'once more').toEqual(moved);
    expect(await store.claim(claimRequest({ conversation }))).toBeNull();

    const taken = await claim(store, { place: 'another-host' });
    expect(taken).toMatchObject({ unfinished: { id: turn.id }, movedFrom: '/here', fence: { epoch: fence.epoch + 2 } });
    const next = new Holder(store, taken.fence);
    await next.write(ending(turn));
    await store.release(taken.fence);
    await enqueue(store, conversation);
    const again = await claim(store, { place: 'another-host' });
    expect(again, 'nothing was sent there yet').toMatchObject({ movedFrom: '/here', turn: { n: 2 } });
    const last = new Holder(store, again.fence);
    await last.write(sending(again.turn?.id ?? ''));
    await last.write(ending(again.turn as Turn));
    await store.release(again.fence);
    await enqueue(store, conversation);
    expect((await claim(store, { place: 'another-host' })).movedFrom).toBeNull();
    expect(await store.verify(ANN, conversation)).toMatchObject({ broken: null });
  });

  test('a conversation that a tracker drives is not moved', async () => {
    const { store } = world;
    const id = await newConversation(store, { driver: 'tracker' });
    const there = { place: 'another-host', name: '/there', by: 'ann' };
    expect(await codeOf(store.moveConversation(ANN, id, there))).toBe('refused');
  });

  test('a tracker claims what is tracked, and nothing else', async () => {
    const { store } = world;
    await enqueue(store, await newConversation(store));
    expect(await store.claim(claimRequest({ driver: 'tracker' }))).toBeNull();
    const id = await newConversation(store, { driver: 'tracker' });
    await enqueue(store, id);
    expect((await claim(store, { driver: 'tracker' })).conversation.id).toBe(id);
  });

  test('a worker skips work that it cannot run', async () => {
    const { store, site } = world;
    await enqueue(store, await newConversation(store), { agent: 'unknown' });
    site.pass(1);
    const id = await newConversation(store);
    await enqueue(store, id);
    expect((await claim(store)).conversation.id).toBe(id);
  });

  test('a named conversation is claimed without an open turn, and not while it is held, not even by its holder', async () => {
    const { store, site } = world;
    const id = await newConversation(store);
    expect(await claim(store, { conversation: id })).toMatchObject({
      turn: null,
      unfinished: null,
      fence: { epoch: 1 },
    });
    expect(await store.claim(claimRequest({ conversation: id }))).toBeNull();
    expect(await store.claim(claimRequest({ conversation: id, worker: worker('w2', 2) }))).toBeNull();
    site.pass(1000);
    expect((await claim(store, { conversation: id, worker: worker('w2', 2) })).fence.epoch).toBe(2);
    expect(await store.claim(claimRequest({ conversation: fresh('nothing') }))).toBeNull();
  });

  test('a turn that is submitted while the lease is held waits for its holder', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const { fence } = await claim(store, { conversation: id });
    const turn = await enqueue(store, id);
    expect(await store.claim(claimRequest({ worker: worker('w2', 2) }))).toBeNull();
    expect((await beginNext(store, fence, [AGENT]))?.turn).toMatchObject({ id: turn.id, state: 'running', attempt: 1 });
  });

  test('turns begin in order, one at a time, and a repeated begin gives the same turn', async () => {
    const { store, site } = world;
    const { conversation, turn, holder, fence } = await begun(store);
    const second = await enqueue(store, conversation);
    const before = await site.contents();
    expect((await beginNext(store, fence, [AGENT]))?.turn).toEqual(turn);
    expect(await site.contents()).toBe(before);
    await holder.write(sending(turn.id));
    expect(await codeOf(beginNext(store, fence, [AGENT]))).toBe('conflict');
    await holder.write(ending(turn));
    expect(await beginNext(store, fence, ['unknown'])).toBeNull();
    expect((await beginNext(store, fence, [AGENT]))?.turn.id).toBe(second.id);
    await holder.write(endingUnsent(second));
    expect(await beginNext(store, fence, [AGENT])).toBeNull();
  });

  test('reading the next turn stores nothing, and a turn can begin and be sent in one commit', async () => {
    const { store, site } = world;
    const { conversation, turn, holder, fence } = await begun(store);
    const opened = session({ state: 'live' });
    await holder.write(opening(opened, turn.id), sending(turn.id, { session: opened.ref }));
    const second = await enqueue(store, conversation);
    await holder.write(ending(turn, { session: opened.ref }));
    const before = await site.contents();
    const next = (await store.nextTurn(fence, [AGENT])) ?? expect.unreachable();
    expect(next.turn).toEqual(second);
    expect(await site.contents()).toBe(before);
    const counts = (await kinds(store, conversation)).length;
    const begin = { write: 'begin', turn: second.id } as const;
    const writes = [begin, sending(second.id, { session: opened.ref })];
    const { seq } = await store.commit(fence, 90, writes);
    expect((await store.commit(fence, 90, writes)).seq).toBe(seq);
    expect((await kinds(store, conversation)).slice(counts)).toEqual(['turn.started', 'turn.sent']);
    expect(await store.findTurn(ANN, second.id)).toMatchObject({
      state: 'running',
      attempt: 1,
      sent: { session: opened.ref },
    });
    expect((await store.findConversation(ANN, conversation))?.state).toBe('running');
    // The turn counts as begun for a later commit, and for an end in the same commit.
    await holder.write(ending(second, { session: opened.ref }));
    const third = await enqueue(store, conversation);
    await store.commit(fence, 95, [{ write: 'begin', turn: third.id }, endingUnsent(third)]);
    expect(await store.findTurn(ANN, third.id)).toMatchObject({ state: 'failed', attempt: 1, sent: null });
    expect((await store.verify(ANN, conversation)).broken).toBeNull();
  });

  test('only the oldest open turn can begin, once; otherwise the whole commit is refused', async () => {
    const { store, site } = world;
    const { conversation, turn, holder, fence } = await begun(store);
    const [second, third] = [await enqueue(store, conversation), await enqueue(store, conversation)];
    const beginning = (id: string, counter: number) =>
      codeOf(store.commit(fence, counter, [{ write: 'begin', turn: id }, sending(id)]));
    const before = await site.contents();
    expect(await beginning(turn.id, 90)).toBe('conflict');
    expect(await beginning(second.id, 91)).toBe('conflict');
    expect(await site.contents()).toBe(before);
    await holder.write(endingUnsent(turn));
    expect(await beginning(third.id, 92)).toBe('conflict');
    const begin = { write: 'begin', turn: second.id } as const;
    expect(await codeOf(store.commit(fence, 70, [begin, begin]))).toBe('conflict');
    expect(await codeOf(store.commit(fence, 75, [begin, { ...begin, turn: third.id }]))).toBe('conflict');
    expect(await store.findTurn(ANN, second.id)).toMatchObject({ state: 'queued', attempt: 0 });
    await store.requestCancel(ANN, second.id, 'ann');
    expect(await beginning(second.id, 93)).toBe('conflict');
    expect(await beginning(third.id, 94)).toBeNull();
    expect(await beginning(third.id, 96)).toBe('conflict');
    expect(
      await codeOf(store.commit({ ...fence, epoch: fence.epoch + 1 }, 98, [{ write: 'begin', turn: third.id }])),
    ).toBe('lease_lost');
  });

  test('a turn can begin in the commit that ends the one before it', async () => {
    const { store } = world;
    const { conversation, turn, holder, fence } = await begun(store);
    const second = await enqueue(store, conversation);
    await holder.write(sending(turn.id));
    await store.commit(fence, 90, [ending(turn), { write: 'begin', turn: second.id }, sending(second.id)]);
    expect(await store.findTurn(ANN, second.id)).toMatchObject({ state: 'running', attempt: 1 });
    expect((await kinds(store, conversation)).slice(-3)).toEqual(['turn.ended', 'turn.started', 'turn.sent']);
  });

  test('a claim or begin returns the current facts that running the turn needs', async () => {
    const { store } = world;
    const limit = { costMicros: null, tokens: 100 };
    const id = await newConversation(store, { limitPerDay: limit });
    await enqueue(store, id);
    const taken = await claim(store, { conversation: id });
    expect(taken.facts).toEqual({ limitPerDay: limit, sessions: [], unknownParts: [], sandbox: null });
    const [turn, holder] = [taken.turn as Turn, new Holder(store, taken.fence)];
    const opened = session({ state: 'live' });
    await holder.write(opening(opened, turn.id), sending(turn.id, { session: opened.ref }));
    const { sandbox, place } = taken.conversation;
    await store.openSandbox(ANN, { id: sandbox, place }, WORKER);
    await store.setLimitPerDay(ANN, id, null);
    await enqueue(store, id);
    await holder.write(ending(turn, { session: opened.ref }));
    const { facts } = (await beginNext(store, taken.fence, [AGENT])) ?? expect.unreachable();
    expect(facts.limitPerDay).toBeNull();
    expect(facts.sandbox).toEqual({ id: sandbox, name: null, setup: [] });
    expect(facts.sessions).toEqual(await store.sessions(ANN, id, { agent: AGENT }));
    expect(facts.sessions.map(({ ref, state }) => [ref, state])).toEqual([[opened.ref, 'live']]);
    // The next holder has not opened the sandbox, and the process of the session has ended.
    await store.forgetWorker(WORKER.id);
    const again = await claim(store, { conversation: id, worker: worker('w2', 2) });
    expect(again.facts?.sandbox).toBeNull();
    expect(again.facts?.sessions).toEqual(await store.sessions(ANN, id, { agent: AGENT }));
    expect(again.facts?.sessions[0]?.state).toBe('dormant');
  });

  test('a commit returns the number of open turns, and one that ends a turn also the agent of the next', async () => {
    const { store } = world;
    const { conversation, turn, fence } = await begun(store);
    await enqueue(store, conversation, { agent: 'other' });
    const sent = await store.commit(fence, 1, [sending(turn.id)]);
    expect(sent.open).toBe(2);
    expect(sent).not.toHaveProperty('next');
    const end = await store.commit(fence, 2, [ending(turn)]);
    expect(end).toMatchObject({ open: 1, next: 'other' });
    await enqueue(store, conversation);
    expect(await store.commit(fence, 2, [ending(turn)])).toEqual({ seq: end.seq, open: 2 });
    const second = await beginNext(store, fence, [AGENT, 'other']);
    if (second === null) throw new Error('The next turn did not begin.');
    await store.commit(fence, 3, [sending(second.turn.id)]);
    expect(await store.commit(fence, 4, [ending(second.turn)])).toMatchObject({ open: 1, next: 'other' });
    const third = await beginNext(store, fence, [AGENT, 'other']);
    if (third === null) throw new Error('The last turn did not begin.');
    await store.commit(fence, 5, [sending(third.turn.id)]);
    expect(await store.commit(fence, 6, [ending(third.turn)])).toMatchObject({ open: 0, next: null });
  });

  test('an expired lease can be taken over, and its old holder writes nothing', async () => {
    const { store, site } = world;
    const { turn, holder, fence } = await begun(store);
    site.pass(1000);
    const taken = await claim(store, { worker: worker('w2', 2) });
    expect(taken.fence.epoch).toBe(fence.epoch + 1);
    const before = await site.contents();
    expect(await codeOf(holder.write(update(turn.id, 'zombie')))).toBe('lease_lost');
    expect(await codeOf(holder.write(sending(turn.id)))).toBe('lease_lost');
    expect(await codeOf(holder.write(endingUnsent(turn)))).toBe('lease_lost');
    expect(await codeOf(beginNext(store, fence, [AGENT]))).toBe('lease_lost');
    expect(await store.renew([fence], 1000)).toEqual([fence]);
    await store.release(fence);
    expect(await site.contents()).toBe(before);
  });

  test('an expired lease that nobody took is still valid, and can be renewed', async () => {
    const { store, site } = world;
    const { turn, holder, fence } = await begun(store);
    site.pass(5000);
    expect(await codeOf(holder.write(update(turn.id, 'late')))).toBeNull();
    expect(await store.renew([fence], 1000)).toEqual([]);
    expect(await store.claim(claimRequest({ worker: worker('w2', 2) }))).toBeNull();
  });

  test('a turn that was begun and not sent is queued again at a takeover, and begins again', async () => {
    const { store, site } = world;
    const { conversation, turn } = await begun(store);
    site.pass(1000);
    const taken = await claim(store, { worker: worker('w2', 2) });
    expect(taken.turn).toMatchObject({ id: turn.id, attempt: 2, state: 'running', sent: null });
    expect(taken.unfinished).toBeNull();
    expect((await kinds(store, conversation)).slice(-2)).toEqual(['turn.requeued', 'turn.started']);
  });

  test('a turn that was sent is returned as unfinished at a takeover, and no other turn begins before it has ended', async () => {
    const { store, site } = world;
    const { conversation, turn, holder } = await begun(store);
    await enqueue(store, conversation);
    await holder.write(sending(turn.id, { position: 'p7' }), update(turn.id, 'half an ans'));
    site.pass(1000);
    const taken = await claim(store, { worker: worker('w2', 2) });
    expect(taken.turn).toBeNull();
    expect(taken.unfinished).toMatchObject({ id: turn.id, state: 'running', attempt: 1, sent: { position: 'p7' } });
    expect(await codeOf(beginNext(store, taken.fence, [AGENT]))).toBe('conflict');
    const failure = { code: 'interrupted', message: 'Lost.' } as const;
    const unfinished = taken.unfinished as Turn;
    await new Holder(store, taken.fence).write(ending(unfinished, { outcome: 'interrupted', failure }));
    expect((await beginNext(store, taken.fence, [AGENT]))?.turn.n).toBe(2);
  });

  test('an unfinished turn is claimed only by a worker that knows its agent', async () => {
    const { store, site } = world;
    const { conversation, turn, holder } = await begun(store);
    await holder.write(sending(turn.id));
    await enqueue(store, conversation, { agent: 'other' });
    site.pass(1000);
    expect(await store.claim(claimRequest({ agents: ['other'] }))).toBeNull();
    expect((await claim(store, { agents: [AGENT] })).unfinished?.id).toBe(turn.id);
  });

  test('a requested cancel survives a takeover', async () => {
    const { store, site } = world;
    const { turn } = await begun(store);
    await store.requestCancel(ANN, turn.id, 'someone');
    site.pass(1000);
    expect((await claim(store)).turn).toMatchObject({ id: turn.id, cancelRequested: true });
  });

  test('a renewal extends leases, also many at once, and returns those that are lost', async () => {
    const { store, site } = world;
    const [a, b] = [await begun(store), await begun(store)];
    site.pass(900);
    expect(await store.renew([a.fence, b.fence], 1000)).toEqual([]);
    site.pass(900);
    expect(await store.claim(claimRequest({ worker: worker('w2', 2) }))).toBeNull();
    await store.renew([a.fence], 1000);
    site.pass(200);
    await claim(store, { worker: worker('w2', 2) });
    expect(await store.renew([a.fence, b.fence], 1000)).toEqual([b.fence]);
  });

  test('an expired lease can be claimed by another worker, and not by the one that still holds it', async () => {
    const { store, site } = world;
    const { conversation, fence } = await begun(store);
    site.pass(1000);
    expect(await store.claim(claimRequest({ held: [conversation] }))).toBeNull();
    const next = await newConversation(store);
    await enqueue(store, next);
    expect((await claim(store, { held: [conversation] })).conversation.id).toBe(next);
    expect(await store.renew([fence], 1000)).toEqual([]);
    site.pass(1000);
    const taken = await claim(store, { worker: worker('w2', 2), held: [next] });
    expect(taken.conversation.id).toBe(conversation);
  });

  test('a jump of the wall clock expires no lease', async () => {
    const { store, site } = world;
    const { fence } = await begun(store);
    site.jump(86_400_000);
    expect(await store.claim(claimRequest({ worker: worker('w2', 2) }))).toBeNull();
    site.jump(-2 * 86_400_000);
    expect(await store.claim(claimRequest({ worker: worker('w2', 2) }))).toBeNull();
    expect(await store.renew([fence], 1000)).toEqual([]);
    site.pass(1000);
    expect(await store.claim(claimRequest({ worker: worker('w2', 2) }))).not.toBeNull();
  });

  test('a released conversation is idle when nothing is open, and claimable at once when something is', async () => {
    const { store } = world;
    const { conversation, turn, holder, fence } = await begun(store);
    await holder.write(endingUnsent(turn));
    await store.release(fence);
    expect(await store.claim(claimRequest())).toBeNull();
    const next = await enqueue(store, conversation);
    const again = await claim(store);
    await enqueue(store, conversation);
    await store.release(again.fence);
    expect((await claim(store, { worker: worker('w2', 2) })).turn).toMatchObject({ id: next.id, attempt: 2 });
  });

  test('after the release of its lease, a holder writes nothing', async () => {
    const { store, site } = world;
    const { turn, holder, fence } = await begun(store);
    await store.release(fence);
    const before = await site.contents();
    expect(await codeOf(holder.write(update(turn.id, 'late')))).toBe('lease_lost');
    expect(await codeOf(beginNext(store, fence, [AGENT]))).toBe('lease_lost');
    expect(await store.renew([fence], 1000)).toEqual([fence]);
    expect(await site.contents()).toBe(before);
  });

  test('workers are listed with their process as long as they hold a lease', async () => {
    const { store } = world;
    const [a, b] = [await begun(store), await begun(store)];
    expect(await store.workers()).toMatchObject([WORKER]);
    await store.release(a.fence);
    expect(await store.workers()).toMatchObject([WORKER]);
    await store.release(b.fence);
    expect(await store.workers()).toEqual([]);
  });

  test('forgetting a worker frees all of its leases at once, and it can write nothing more', async () => {
    const { store, site } = world;
    const [a, b] = [await begun(store), await begun(store)];
    const idle = await newConversation(store);
    await claim(store, { conversation: idle });
    await store.forgetWorker(WORKER.id);
    expect(await store.workers()).toEqual([]);
    const before = await site.contents();
    expect(await codeOf(a.holder.write(update(a.turn.id, 'zombie')))).toBe('lease_lost');
    expect(await site.contents()).toBe(before);
    const ids = [await claim(store, { worker: worker('w2', 2) }), await claim(store, { worker: worker('w2', 2) })];
    expect(new Set(ids.map(({ conversation }) => conversation.id))).toEqual(new Set([a.conversation, b.conversation]));
    expect(await store.claim(claimRequest())).toBeNull();
    await store.forgetWorker('nobody');
  });

  test.each([
    ['worker', 'is forgotten'],
    ['worker', 'is taken over'],
    ['worker', 'gives it back'],
    ['tracker', 'is forgotten'],
    ['tracker', 'is taken over'],
    ['tracker', 'gives it back'],
  ] as const)(
    'when its %s %s, live sessions become dormant, except that of a turn which was sent',
    async (driver, how) => {
      const { store, site } = world;
      const { conversation, turn, holder, fence } = await begun(store, { driver });
      const [old, current] = [session(), session()];
      await holder.write(opening(old), opening(current, turn.id), sending(turn.id, { session: current.ref }));
      const states = async () => {
        const all = await store.sessions(ANN, conversation);
        return Object.fromEntries(all.map(({ ref, state }) => [ref, state]));
      };
      if (how === 'is forgotten') await store.forgetWorker(WORKER.id);
      else if (how === 'gives it back') await store.release(fence);
      else {
        site.pass(1000);
        await claim(store, { worker: worker('w2', 2), driver });
      }
      expect(await states()).toEqual({ [old.ref]: 'dormant', [current.ref]: 'live' });
      const changed = (await allEvents(store, conversation)).filter(({ kind }) => kind === 'session.changed');
      expect(changed).toMatchObject([{ turn: null, payload: { id: old.id, state: 'dormant' } }]);
      expect(await store.verify(ANN, conversation)).toMatchObject({ broken: null });
    },
  );

  test('the processes of a worker are those of its sessions and of turns that were sent, as long as it holds them', async () => {
    const { store } = world;
    const process = (id: number) => ({ kind: 'test', id: `${id}`, label: `process ${id}` });
    const [a, b] = [await begun(store), await begun(store)];
    const [warm, closed] = [session({ process: process(1) }), session({ process: process(2) })];
    await a.holder.write(opening(warm), opening(closed), {
      write: 'change-session',
      ref: closed.ref,
      change: { state: 'dormant', process: null },
      reason: null,
    });
    await b.holder.write(sending(b.turn.id, { process: process(3) }));
    expect(await store.processesOf('nobody')).toEqual([]);
    expect((await store.processesOf(WORKER.id)).toSorted((x, y) => x.id.localeCompare(y.id))).toEqual([
      process(1),
      process(3),
    ]);
    await b.holder.write(ending(b.turn));
    expect(await store.processesOf(WORKER.id)).toEqual([process(1)]);
    await store.release(a.fence);
    expect(await store.processesOf(WORKER.id)).toEqual([]);
  });

  test('a process that an older version stored is read as one of the local machine', async () => {
    const { store } = world;
    const identity = { pid: 9, started: '1', boot: 'boot-1', namespace: 'pid-1', mark: 'm' };
    const older = identity as unknown as SandboxProcess;
    const { conversation, turn, holder } = await begun(store);
    const opened = session({ process: older });
    await holder.write(opening(opened), sending(turn.id, { process: older }));
    const read = localProcess(identity);
    expect((await store.sessions(ANN, conversation))[0]?.process).toEqual(read);
    expect((await store.turns(ANN, conversation, { after: 0, limit: 1 }))[0]?.sent?.process).toEqual(read);
    expect(await store.processesOf(WORKER.id)).toContainEqual(read);
    expect((await store.census()).sessions.find(({ ref }) => ref === opened.ref)?.process).toEqual(read);
  });

  test('a process that takes up turns is listed with or without a lease, until it is forgotten', async () => {
    const { store, site } = world;
    const taker = { ...WORKER, place: 'this-host', agents: [AGENT] };
    await store.enlist(taker);
    await store.enlist({ ...taker, agents: [AGENT, 'other'] });
    site.pass(7);
    expect(await store.takers()).toEqual([{ ...taker, agents: [AGENT, 'other'], quietMs: 7 }]);
    await store.enlist(taker);
    expect(await store.takers()).toEqual([{ ...taker, quietMs: 0 }]);
    expect(await store.workers()).toEqual([]);
    const { fence } = await begun(store);
    await store.release(fence);
    expect(await store.takers()).toHaveLength(1);
    await store.forgetWorker(WORKER.id);
    expect(await store.takers()).toEqual([]);
  });

  test('a place has the name that was given last, and to give the same name again stores nothing', async () => {
    const { store, site } = world;
    expect(await store.placeName('here')).toBeNull();
    await store.namePlace('here', '/old');
    await store.namePlace('here', '/new');
    expect(await store.placeName('here')).toBe('/new');
    const before = await site.contents();
    await store.namePlace('here', '/new');
    expect(await site.contents()).toBe(before);
  });

  test('standings show the oldest open turn and the holder of each conversation, only to its owner', async () => {
    const { store, site } = world;
    const { conversation, turn, fence } = await begun(store);
    await enqueue(store, conversation);
    const [queued, idle] = [await newConversation(store), await newConversation(store)];
    const waiting = await enqueue(store, queued, { agent: 'other' });
    await store.namePlace('this-host', '/home');
    const all = [conversation, queued, idle, 'unknown'];
    const ours = { owner: ANN, key: null, driver: 'worker', place: 'this-host', home: '/home' };
    const holder = { ...WORKER, expired: false };
    const standings = await store.standings(ANN, all);
    expect(standings).toEqual([
      { ...ours, conversation, turn: { id: turn.id, n: 1, state: 'running', agent: AGENT }, holder },
      { ...ours, conversation: queued, turn: { id: waiting.id, n: 1, state: 'queued', agent: 'other' }, holder: null },
    ]);
    expect((await store.census()).standings).toEqual(standings);
    expect(await store.standings(BOB, all)).toEqual([]);
    site.pass(1000);
    expect(await store.standings(ANN, [conversation])).toMatchObject([{ holder: { expired: true } }]);
    await store.release(fence);
    expect(await store.standings(ANN, [conversation])).toMatchObject([{ turn: { state: 'running' }, holder: null }]);
  });

  test('a claim without a turn gets only conversations with a begun turn: an unsent one is queued again, a sent one is unfinished', async () => {
    const { store } = world;
    await enqueue(store, await newConversation(store));
    const [unsent, sent] = [await begun(store), await begun(store)];
    await sent.holder.write(sending(sent.turn.id));
    expect(await store.claim(claimRequest({ withoutTurn: true }))).toBeNull();
    await store.forgetWorker(WORKER.id);
    expect(await store.claim(claimRequest({ withoutTurn: true, agents: ['unknown'] }))).toBeNull();
    const first = await claim(store, { withoutTurn: true });
    expect(first).toMatchObject({ turn: null, unfinished: null, conversation: { id: unsent.conversation } });
    expect(await store.findTurn(ANN, unsent.turn.id)).toMatchObject({ state: 'queued', startedAt: null });
    const second = await claim(store, { withoutTurn: true });
    expect(second).toMatchObject({ turn: null, unfinished: { id: sent.turn.id } });
    expect(await store.claim(claimRequest({ withoutTurn: true }))).toBeNull();
  });

  test('a claim with idleMs gets only what has been free for that long', async () => {
    const { store, site } = world;
    const id = await newConversation(store);
    await enqueue(store, id);
    site.pass(999);
    expect(await store.claim(claimRequest({ idleMs: 1000 }))).toBeNull();
    site.pass(1);
    expect((await claim(store, { idleMs: 1000 })).conversation.id).toBe(id);
  });

  test('another machine takes a lease only when it has expired, however different the uptimes are', async () => {
    const { store, site } = world;
    const { turn, holder } = await begun(store);
    const other = await site.open({ boot: 'boot-2' });
    const third = await site.open({ boot: 'boot-3' });
    const elsewhere = claimRequest({ worker: worker('w2', 2) });
    expect(await other.workers()).toMatchObject([WORKER]);
    for (let beats = 0; beats < 3; beats += 1) {
      site.pass(999);
      expect(await other.claim(elsewhere)).toBeNull();
      expect(await third.claim(elsewhere)).toBeNull();
      expect(await store.renew([holder.fence], 1000)).toEqual([]);
    }
    expect(await codeOf(holder.write(update(turn.id, 'still here')))).toBeNull();
    site.pass(1000);
    const taken = await other.claim(elsewhere);
    expect(taken?.fence.epoch).toBe(2);
    expect(await codeOf(holder.write(update(turn.id, 'too late')))).toBe('lease_lost');
    site.pass(999);
    expect(await store.claim(claimRequest())).toBeNull();
    site.pass(1);
    expect((await claim(store)).fence.epoch).toBe(3);
  });

  test('after another boot work is claimed in its original order, and a held conversation when its worker is forgotten', async () => {
    const { store, site } = world;
    const held = await begun(store);
    site.pass(1);
    const [first, second] = [await newConversation(store), await newConversation(store)];
    await enqueue(store, second);
    site.pass(1);
    await enqueue(store, first);
    await store.close();
    const after = await site.open({ boot: 'boot-2' });
    const ids = [await claim(after), await claim(after)].map(({ conversation }) => conversation.id);
    expect(ids).toEqual([second, first]);
    expect(await after.claim(claimRequest())).toBeNull();
    await after.forgetWorker(WORKER.id);
    expect(
      (await after.claim(claimRequest({ worker: worker('w2', 2), conversation: held.conversation })))?.fence.epoch,
    ).toBe(2);
  });

  test('opening the store again in the same boot does not change leases', async () => {
    const { store, site } = world;
    const { turn, holder } = await begun(store);
    const other = await site.open();
    expect(await other.claim(claimRequest({ worker: worker('w2', 2) }))).toBeNull();
    expect(await codeOf(holder.write(update(turn.id, 'still here')))).toBeNull();
  });
}
