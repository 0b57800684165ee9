import { expect, test } from 'vitest';
import type { SetupResult } from '../../../src/core/sandbox/sandbox.ts';
import { conversationKeyOf } from '../../../src/core/tasks/task.ts';
import type { Store } from '../../../src/ports/store.ts';
import { added, claimTask, finish } from './task-world.ts';
import {
  ANN,
  BOB,
  begun,
  codeOf,
  ending,
  enqueue,
  fresh,
  newConversation,
  opening,
  sending,
  session,
  WORKER,
  type World,
  worker,
} from './world.ts';

const PLACE = 'this-host';
const OTHER = worker('worker-2', 202);
const STEP: SetupResult = { name: 'install', digest: 'd', at: 5, ms: 7, code: 0, output: 'done' };

export function sandboxes(world: World): void {
  test('a sandbox is found by its name in any process, and each owner has separate names', async () => {
    const { store, site } = world;
    const [anns, bobs] = [await named(store, 'website'), await named(store, 'website', BOB)];
    expect(await (await site.open()).findSandbox(ANN, 'website')).toMatchObject({
      ...{ id: anns, owner: ANN, name: 'website', place: PLACE, openedAt: null, restedAt: null, conversations: 0 },
      ...{ setup: [], disk: null },
    });
    expect((await store.findSandbox(ANN, anns))?.name).toBe('website');
    expect((await store.findSandbox(BOB, 'website'))?.id).toBe(bobs);
    expect(await store.findSandbox(ANN, 'other')).toBeNull();
    const contents = await site.contents();
    expect((await store.nameSandbox(ANN, { id: anns, place: PLACE, name: 'website' })).id).toBe(anns);
    expect(await site.contents()).toBe(contents);
    expect(await codeOf(store.nameSandbox(ANN, { id: fresh('b'), place: PLACE, name: 'website' }))).toBe('conflict');
  });

  test('the first open creates it; an open by another process or after a rest reopens it', async () => {
    const { store } = world;
    const id = fresh('sandbox');
    const open = async (by = WORKER) => {
      const result = await store.openSandbox(ANN, { id, place: PLACE }, by);
      return 'opened' in result ? result.opened : result;
    };
    expect([await open(), await open(), await open(OTHER), await open(OTHER), await open()]).toEqual([
      ...['created', 'same', 'reopened', 'same', 'reopened'],
    ]);
    await store.leaveSandbox(ANN, id, 'rested', 'idle');
    expect((await store.findSandbox(ANN, id))?.restedAt).toEqual(expect.any(Number));
    expect(await open()).toBe('reopened');
    expect((await store.findSandbox(ANN, id))?.restedAt).toBeNull();
  });

  test('while one worker holds it alone, others can neither open nor hold it; afterwards they can', async () => {
    const { store, site } = world;
    const id = await opened(store);
    const hold = (by = WORKER, more = {}) => store.holdSandbox(ANN, id, { worker: by, leaseMs: 1000, ...more });
    expect([await hold(), await hold()]).toEqual([null, null]);
    expect(await hold(OTHER)).toEqual({ alone: WORKER });
    expect(await store.openSandbox(ANN, { id, place: PLACE }, OTHER)).toEqual({ alone: WORKER });
    expect(await store.openSandbox(ANN, { id, place: PLACE }, WORKER)).toMatchObject({ opened: 'same' });
    await store.releaseSandbox(ANN, id, OTHER.id);
    expect(await hold(OTHER)).toEqual({ alone: WORKER });
    await store.releaseSandbox(ANN, id, WORKER.id);
    expect(await hold(OTHER)).toBeNull();
    site.pass(1500);
    expect(await hold()).toBeNull();
    expect(await hold(OTHER, { instead: 'worker-3' })).toEqual({ alone: WORKER });
    expect(await hold(OTHER, { instead: WORKER.id })).toBeNull();
    expect(await codeOf(store.holdSandbox(ANN, 'none', { worker: WORKER, leaseMs: 1 }))).toBe('not_found');
  });

  test('of many that hold it at once, one gets it', async () => {
    const { store, site } = world;
    const id = await opened(store);
    const stores = [store, await site.open(), await site.open()];
    const held = await Promise.all(
      stores.map((one, n) => one.holdSandbox(ANN, id, { worker: worker(`worker-${n}`, n), leaseMs: 1000 })),
    );
    expect(held.filter((result) => result === null)).toHaveLength(1);
  });

  test('it cannot be held as unused while a lease, an open turn or a task uses it', async () => {
    const { store } = world;
    const id = await opened(store);
    const hold = () => codeOf(store.holdSandbox(ANN, id, { worker: OTHER, leaseMs: 1000, unused: true }));
    const { conversation, turn, holder, fence } = await begun(store, { sandbox: id });
    expect(await hold()).toBe('conflict');
    await holder.write(sending(turn.id), ending(turn));
    expect(await hold()).toBe('conflict');
    await store.release(fence);
    expect(await hold()).toBeNull();
    const open = await enqueue(store, conversation);
    expect(await hold()).toBe('conflict');
    await store.requestCancel(ANN, open.id, 'ann');
    expect(await hold()).toBeNull();
  });

  test.each([null, 'harvest'])(
    'it cannot be held as unused while a task works in it; milestone: %s',
    async (milestone) => {
      const { store } = world;
      const id = await opened(store);
      const hold = () => codeOf(store.holdSandbox(ANN, id, { worker: OTHER, leaseMs: 1000, unused: true }));
      await added(store, { milestone });
      const claimed = await claimTask(store);
      const conversation = await newConversation(store, { sandbox: id, key: conversationKeyOf(claimed.task) });
      await newConversation(store, { sandbox: id, key: `task/${fresh('other')}` });
      expect(await hold()).toBeNull();
      await store.tasks.commit(claimed.fence, { progress: { ...claimed.task.progress, conversation }, events: [] });
      expect(await hold()).toBe('conflict');
      await finish(store, claimed);
      expect(await hold()).toBeNull();
    },
  );

  test('while it is shared, it cannot be held as unused, but others can open it and set it up', async () => {
    const { store, site } = world;
    const id = await opened(store);
    const hold = (by: typeof WORKER, more = {}) =>
      codeOf(store.holdSandbox(ANN, id, { worker: by, leaseMs: 1000, ...more }));
    const third = worker('worker-3', 203);
    const usedAt = (await store.findSandbox(ANN, id))?.usedAt ?? 0;
    site.pass(10);
    expect(await hold(WORKER, { shared: true })).toBeNull();
    expect((await store.findSandbox(ANN, id))?.usedAt).toBeGreaterThan(usedAt);
    expect(await hold(OTHER, { unused: true })).toBe('conflict');
    expect(await store.openSandbox(ANN, { id, place: PLACE }, OTHER)).toMatchObject({ opened: 'reopened' });
    expect(await hold(third, { shared: true })).toBeNull();
    await store.releaseSandbox(ANN, id, third.id);
    expect(await hold(WORKER, { shared: true })).toBeNull(); // renewed
    expect(await hold(OTHER)).toBeNull();
    expect(await store.holdSandbox(ANN, id, { worker: WORKER, leaseMs: 1000, shared: true })).toEqual({ alone: OTHER });
    await store.releaseSandbox(ANN, id, OTHER.id);
    expect(await hold(WORKER, { shared: true })).toBeNull();
    site.pass(1500);
    expect(await hold(OTHER, { unused: true })).toBeNull();
  });

  test('a conversation that works below a folder is found: first a busy one, then one of another owner', async () => {
    const { store } = world;
    const below = (path = '/srv/box', place = PLACE) => store.worksBelow(ANN, { place, path });
    await newConversation(store, { cwd: '/srv/box-2/x' });
    await newConversation(store, { cwd: '/srv' });
    expect(await below()).toBeNull();
    const own = await newConversation(store, { cwd: '/srv/box/a', key: 'own' });
    expect(await below()).toEqual({ owner: ANN, conversation: own, key: 'own', busy: false });
    expect(await below('/srv/box/a')).toMatchObject({ conversation: own });
    expect(await below('/srv/box', 'another-place')).toBeNull();
    const bobs = await newConversation(store, { cwd: '/srv/box' }, BOB);
    expect(await below()).toEqual({ owner: BOB, conversation: bobs, key: null, busy: false });
    const open = await enqueue(store, own);
    expect(await below()).toMatchObject({ conversation: own, busy: true });
    await store.requestCancel(ANN, open.id, 'ann');
    expect(await below()).toMatchObject({ conversation: bobs });
  });

  test('its uses show owner, conversation and session', async () => {
    const { store } = world;
    const id = await opened(store);
    const { conversation, turn, holder } = await begun(store, { sandbox: id });
    expect(await store.sandboxUses(ANN, id, 9)).toEqual([{ owner: ANN, sandbox: id, conversation, session: null }]);
    const native = session();
    await holder.write(opening(native, turn.id));
    const other = await newConversation(store, { sandbox: id });
    await newConversation(store, {});
    const uses = await store.sandboxUses(ANN, id, 9);
    expect(uses).toContainEqual({ owner: ANN, sandbox: id, conversation, session: native.id });
    expect(uses.map((use) => use.conversation).toSorted()).toEqual([conversation, other].toSorted());
    expect((await store.findSandbox(ANN, id))?.conversations).toBe(2);
    expect(await store.sandboxUses(ANN, id, 1)).toHaveLength(1);
  });

  test('results of its setup and its disk use are stored, and disk use is summed for each owner', async () => {
    const { store } = world;
    const [a, b] = [await opened(store), await opened(store)];
    await opened(store, BOB);
    await store.changeSandbox(ANN, a, { setup: [STEP] });
    await store.changeSandbox(ANN, a, { disk: { work: 100, state: 20, copies: 3, at: 9 } });
    await store.changeSandbox(ANN, b, { disk: { work: 1, state: 1, copies: 1, at: 9 } });
    expect(await store.findSandbox(ANN, a)).toMatchObject({ setup: [STEP], disk: { work: 100, state: 20, copies: 3 } });
    expect(await store.diskUse(ANN)).toEqual({ sandboxes: 2, bytes: 126 });
    expect(await store.diskUse(BOB)).toEqual({ sandboxes: 1, bytes: 0 });
    expect(await store.diskUse('carl')).toEqual({ sandboxes: 0, bytes: 0 });
    expect(await store.copiedBytes(ANN, a)).toBe(0);
    expect(await codeOf(store.changeSandbox(ANN, 'none', { setup: [] }))).toBe('not_found');
  });

  test('lists are newest first, in pages', async () => {
    const { store } = world;
    const made = [await opened(store), await opened(store), await opened(store)];
    await opened(store, BOB);
    const ids = async (page: { limit: number; before?: string }) =>
      (await store.listSandboxes(ANN, page)).map(({ id }) => id);
    expect(await ids({ limit: 2 })).toEqual([made[2], made[1]]);
    expect(await ids({ limit: 2, before: made[1] as string })).toEqual([made[0]]);
    expect(await ids({ limit: 2, before: made[0] as string })).toEqual([]);
  });

  test('idle sandboxes are those of the place, of all owners, that were not used for a while', async () => {
    const { store, site } = world;
    const [old, older] = [await opened(store), await opened(store, BOB)];
    const resting = await opened(store);
    await store.leaveSandbox(ANN, resting, 'rested', 'idle');
    await named(store, 'never-opened');
    site.pass(10_000);
    const now = (await store.findSandbox(ANN, await opened(store)))?.usedAt as number;
    const idle = async (set: object = {}) => {
      const request = { place: PLACE, before: now - 5_000, awake: true, limit: 9, ...set };
      return (await store.idleSandboxes(request)).sandboxes.map(({ id }) => id);
    };
    expect(await idle()).toEqual([old, older]);
    expect(await idle({ awake: false })).toEqual([old, older, resting]);
    expect(await idle({ place: 'elsewhere' })).toEqual([]);
    expect(await idle({ before: now - 60_000 })).toEqual([]);
    const { next } = await store.idleSandboxes({ place: PLACE, before: now - 5_000, awake: true, limit: 1 });
    expect(await idle({ limit: 1, after: next })).toEqual([older]);
    // A turn counts as a use, although nobody has opened the sandbox since.
    await enqueue(store, await newConversation(store, { sandbox: old }));
    expect(await idle()).toEqual([older]);
  });

  test('its conversations get events of its rest and its end, and it is deleted when none uses it', async () => {
    const { store } = world;
    const id = await opened(store);
    const conversation = await newConversation(store, { sandbox: id });
    await store.changeSandbox(ANN, id, { setup: [STEP], disk: { work: 1, state: 1, copies: 1, at: 1 } });
    const { updatedAt } = (await store.findConversation(ANN, conversation)) ?? {};
    await store.leaveSandbox(ANN, id, 'rested', 'idle');
    await store.leaveSandbox(ANN, id, 'destroyed', 'ann asked');
    const events = await store.events(ANN, conversation, { after: 0, limit: 9 });
    expect(events.slice(-2).map(({ kind, payload }) => ({ kind, payload }))).toEqual([
      { kind: 'sandbox.rested', payload: { id, name: null, reason: 'idle' } },
      { kind: 'sandbox.destroyed', payload: { id, name: null, reason: 'ann asked' } },
    ]);
    expect((await store.findConversation(ANN, conversation))?.updatedAt).toBe(updatedAt);
    expect((await store.verify(ANN, conversation)).broken).toBeNull();
    expect(await store.findSandbox(ANN, id)).toMatchObject({ openedAt: null, restedAt: null, setup: [], disk: null });
    await store.eraseConversation(ANN, conversation);
    await store.leaveSandbox(ANN, id, 'destroyed', 'ann asked');
    expect(await store.findSandbox(ANN, id)).toBeNull();
    expect((await store.census()).sandboxes).toContain(id);
  });
}

async function named(store: Store, name: string, owner = ANN): Promise<string> {
  return (await store.nameSandbox(owner, { id: fresh('sandbox'), place: PLACE, name })).id;
}

async function opened(store: Store, owner = ANN): Promise<string> {
  const id = fresh('sandbox');
  await store.openSandbox(owner, { id, place: PLACE }, WORKER);
  return id;
}
