import { expect, test } from 'vitest';
import { withTurns } from '../../../src/core/tasks/task-progress.ts';
import type { Turn } from '../../../src/core/turn/turn.ts';
import type { NewConversation } from '../../../src/ports/store/conversations.ts';
import { added, claimTask, DONE, finish, taskTurn } from './task-world.ts';
import {
  ANN,
  beginNext,
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
  sending,
  session,
  spec,
  update,
  usage,
  type World,
} from './world.ts';

const SECRET = 'swordfish';

export function erasing(world: World): void {
  test('erases everything that was said, and the chain can still be verified', async () => {
    const { store, site } = world;
    const { conversation, fence, turn } = await said(world);
    expect(await site.contents()).toContain(SECRET);
    const { head } = await store.verify(ANN, conversation);
    await store.eraseConversation(ANN, conversation);
    expect(await site.contents()).not.toContain(SECRET);
    expect(await store.verify(ANN, conversation, head)).toEqual({ broken: null, head, kept: true });
    expect(await codeOf(store.verify('bob', conversation))).toBe('not_found');
    expect(await store.findConversation(ANN, conversation)).toBeNull();
    expect(await store.findTurn(ANN, turn)).toBeNull();
    expect(await store.listConversations(ANN, { limit: 9 })).toEqual([]);
    expect(await store.search(ANN, SECRET, 9)).toEqual([]);
    expect(await store.usage(ANN)).toHaveLength(1);
    expect(await codeOf(store.eraseConversation(ANN, conversation))).toBe('not_found');
    await site.damage({ kind: 'time', conversation, seq: 3 });
    expect((await store.verify(ANN, conversation)).broken).toBe(3);
    expect(await codeOf(store.commit(fence, 900, [update(null, 'late')]))).toBe('lease_lost');
    expect(await codeOf(beginNext(store, fence, ['scripted']))).toBe('lease_lost');
    expect(await store.renew([fence], 1_000)).toEqual([fence]);
  });

  test('frees the key and the request ids', async () => {
    const { store } = world;
    const { conversation } = await said(world);
    await store.eraseConversation(ANN, conversation);
    const next = await store.ensureConversation(ANN, { ...spec(), key: 'notes' });
    expect(next.created).toBe(true);
    expect((await enqueue(store, next.conversation.id, { requestId: 'once' })).n).toBe(1);
  });

  test('with a head, erases only if the chain ends there', async () => {
    const { store } = world;
    const { conversation } = await said(world);
    const { head } = await store.verify(ANN, conversation);
    const { id: later } = await enqueue(store, conversation);
    await store.requestCancel(ANN, later, 'ann');
    expect(await codeOf(store.eraseConversation(ANN, conversation, { head }))).toBe('conflict');
    const { head: now, broken } = await store.verify(ANN, conversation);
    expect([now === head, broken]).toEqual([false, null]);
    const forged = `${now.slice(0, -1)}${now.endsWith('0') ? 1 : 0}`;
    expect(await codeOf(store.eraseConversation(ANN, conversation, { head: forged }))).toBe('conflict');
    expect(await store.findConversation(ANN, conversation)).not.toBeNull();
    await store.eraseConversation(ANN, conversation, { head: now });
    expect(await store.findConversation(ANN, conversation)).toBeNull();
    expect(await store.verify(ANN, conversation, head)).toMatchObject({ kept: true });
  });

  test('is refused while a turn is open', async () => {
    const { store } = world;
    const { conversation } = await begun(store);
    expect(await codeOf(store.eraseConversation(ANN, conversation))).toBe('conflict');
    expect(await store.findConversation(ANN, conversation)).not.toBeNull();
  });

  test('removes the words of a task that worked in it, and keeps the numbers; is refused while such a task is open', async () => {
    const { store, site } = world;
    const { conversation } = await said(world);
    const gate = { kind: 'command', command: SECRET, timeoutMs: 1 } as const;
    const [task] = await added(store, { goal: SECRET, name: SECRET, milestone: SECRET, gate, session: SECRET });
    const claimed = await claimTask(store);
    const failure = { code: 'agent_failed', message: SECRET } as const;
    const result = { verdict: 'fail', summary: SECRET, output: SECRET, cut: 0, ms: 1 } as const;
    const turn = taskTurn({ conversation, failure, usage: usage(1) });
    const progress = {
      ...withTurns(claimed.task.progress, [turn]),
      conversation,
      feedback: { gate: result, person: { say: SECRET } },
    };
    const events = [
      { kind: 'task.turned', payload: turn },
      { kind: 'task.gated', payload: { round: 1, iteration: 1, result } },
    ] as const;
    const next = await store.tasks.commit(claimed.fence, { progress, turns: [turn], events });
    expect(await codeOf(store.eraseConversation(ANN, conversation))).toBe('conflict');
    await finish(store, { ...claimed, task: next }, { ...DONE, reason: SECRET });
    await store.eraseConversation(ANN, conversation);
    expect(await site.contents()).not.toContain(SECRET);
    expect(await store.tasks.find(ANN, task.id)).toMatchObject({
      goal: '[erased]',
      state: 'done',
      progress: { turns: 1 },
    });
    expect(await store.tasks.usage(ANN)).toMatchObject([{ task: task.id, turns: 1, usage: usage(1) }]);
    expect((await store.tasks.events(ANN, { after: 0, limit: 9 })).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
  });

  test('makes it impossible to retry a task whose words were erased', async () => {
    const { store } = world;
    const { conversation } = await said(world);
    const [task] = await added(store, { goal: SECRET });
    const claimed = await claimTask(store);
    const progress = { ...claimed.task.progress, conversation };
    await store.tasks.commit(claimed.fence, { progress, state: 'cancelled', events: [] });
    await store.eraseConversation(ANN, conversation);
    expect(await codeOf(store.tasks.retry(ANN, task.id, { by: 'ann', say: null }))).toBe('conflict');
  });

  test('leaves what a fork has of it, long texts included', async () => {
    const { store } = world;
    const long = `${SECRET} `.repeat(2_000);
    const { conversation, turn } = await said(world, long);
    const fork = await store.fork(ANN, conversation, 1, { ...spec(), key: 'fork' });
    await store.eraseConversation(ANN, conversation);
    const [record] = await store.recordsAfter(ANN, fork.id, { after: 0, limit: 9 });
    expect(JSON.stringify(record?.prompt)).toContain(long.trim().slice(0, 5_000));
    expect((await store.verify(ANN, fork.id)).broken).toBeNull();
    expect(await store.findTurn(ANN, turn)).toBeNull();
  });

  test('returns what the conversation had outside of the store', async () => {
    const { store } = world;
    const { conversation } = await said(world, SECRET, { cwd: '/projects/notes' });
    const { cwd, sessions } = await store.eraseConversation(ANN, conversation);
    expect(cwd).toBe('/projects/notes');
    expect(sessions).toMatchObject([{ agent: 'scripted', storage: 'scripted', process: null }]);
  });

  test('does not return sessions that came with an import, because they were used elsewhere', async () => {
    const { store } = world;
    const sessions = [{ id: 's1', agent: 'scripted', origin: 'new', watermark: 0, parent: null }] as const;
    const { id } = await store.importConversation(ANN, spec(), { records: [], sessions });
    expect(await store.eraseConversation(ANN, id)).toEqual({ cwd: null, sessions: [] });
  });

  test('with its sandbox is refused and changes nothing while others work in that sandbox', async () => {
    const { store } = world;
    const { conversation } = await said(world);
    const sandbox = '/home/sandboxes/one';
    const refused = async () => {
      expect(await codeOf(store.eraseConversation(ANN, conversation, { sandbox }))).toBe('refused');
      expect(await store.findConversation(ANN, conversation)).not.toBeNull();
      const { erased } = await store.census();
      expect(erased.filter((one) => one.conversation === conversation)).toEqual([]);
    };
    const other = await newConversation(store, { cwd: `${sandbox}/deep` }, 'bob');
    await refused();
    await store.eraseConversation('bob', other);
    const same = await newConversation(store, { cwd: sandbox });
    await refused();
    await store.eraseConversation(ANN, same);
    await added(store, { cwd: `${sandbox}/work` });
    await refused();
    await finish(store, await claimTask(store));
    await newConversation(store, { cwd: `${sandbox}-2` });
    await newConversation(store, { cwd: '/home/sandboxes' });
    await store.eraseConversation(ANN, conversation, { sandbox });
    expect((await store.census()).erased).toEqual(
      expect.arrayContaining([{ owner: ANN, conversation, sandbox: expect.any(String), toDelete: true }]),
    );
  });

  test('with its sandbox is refused while a task works there, whatever characters the path has', async () => {
    const { store } = world;
    const sandbox = '/home/50% of_all!/"quoted" \\ ü\n';
    await added(store, { cwd: `${sandbox}/work` }, { cwd: '/home/50% of all!' });
    const conversation = await newConversation(store);
    expect(await codeOf(store.eraseConversation(ANN, conversation, { sandbox }))).toBe('refused');
    await store.eraseConversation(ANN, conversation, { sandbox: '/home/50% of_all' });
  });

  test('lets only its owner find its sandbox by the id of the conversation afterwards, as long as nobody shares it', async () => {
    const { store } = world;
    const { conversation } = await said(world);
    const found = await store.findToErase(ANN, conversation);
    const { sandbox, place } = found ?? { sandbox: '', place: '' };
    expect(found).toEqual({ id: conversation, sandbox, place, isErased: false });
    await store.eraseConversation(ANN, conversation);
    expect(await store.findToErase(ANN, conversation)).toEqual({ id: conversation, sandbox, place, isErased: true });
    expect(await store.findToErase('bob', conversation)).toBeNull();
    const noted = { owner: ANN, conversation, sandbox };
    expect((await store.census()).erased).toEqual([{ ...noted, toDelete: false }]);
    const path = `/home/sandboxes/${sandbox}`;
    expect(await codeOf(store.eraseConversation('bob', conversation, { sandbox: path }))).toBe('not_found');
    expect(await store.eraseConversation(ANN, conversation, { sandbox: path })).toEqual({ cwd: null, sessions: [] });
    expect((await store.census()).erased).toEqual([{ ...noted, toDelete: true }]);
    const unfinished = (at: string, before = Number.MAX_SAFE_INTEGER) => store.unfinishedErasures(at, before);
    expect(await unfinished(place)).toEqual([noted]);
    expect([await unfinished('elsewhere'), await unfinished(place, 0)]).toEqual([[], []]);
    await store.endErasure('bob', conversation);
    expect(await unfinished(place)).toEqual([noted]);
    for (let times = 0; times < 2; times += 1) await store.endErasure(ANN, conversation);
    expect(await unfinished(place)).toEqual([]);
    expect((await store.census()).erased).toEqual([{ ...noted, toDelete: false }]);
    await newConversation(store, { sandbox });
    expect((await store.census()).erased).toEqual([]);
  });

  test('makes it impossible to claim the conversation, named or not', async () => {
    const { store } = world;
    const { conversation } = await said(world);
    await store.eraseConversation(ANN, conversation);
    const worker = { id: fresh('worker'), process: { pid: 1, started: '1', boot: 'b', namespace: 'n' } };
    const request = { worker, place: 'this-host', agents: ['scripted'], driver: 'worker', leaseMs: 1_000 } as const;
    expect(await store.claim({ ...request, conversation })).toBeNull();
    expect(await store.claim(request)).toBeNull();
  });
}

/** A conversation with a text everywhere where it can be stored. */
async function said({ store }: World, text = SECRET, set: Partial<NewConversation> = {}) {
  const words = [{ type: 'text', text }] as const;
  const conversation = await newConversation(store, { key: 'notes', ...set });
  await enqueue(store, conversation, { prompt: words, requestId: 'once' });
  const { fence, turn: claimed } = await claim(store, { conversation });
  const turn = claimed as Turn;
  const holder = new Holder(store, fence);
  const native = session();
  await holder.write(opening(native, turn.id), sending(turn.id, { session: native.ref }), update(turn.id, text));
  const memo = { memo: SECRET, mirror: { from: 0, bytes: new TextEncoder().encode(SECRET) } };
  await holder.write({ write: 'change-session', ref: native.ref, change: memo, reason: null });
  await holder.write({ write: 'receipt', receipt: receipt(), turn: turn.id, session: native.ref });
  await holder.write(ending(turn, { session: native.ref, usage: usage(1) }));
  return { conversation, fence, turn: turn.id };
}
