import { expect, test } from 'vitest';
import type { TaskTurn } from '../../../src/core/tasks/task.ts';
import { withTurns } from '../../../src/core/tasks/task-progress.ts';
import { inPages } from '../../../src/flow/pages.ts';
import type { TaskClaim, TaskUsageRow } from '../../../src/ports/store/tasks.ts';
import type { Store } from '../../../src/ports/store.ts';
import { added, addTasks, claimTask, DONE, finish, newTask, taskClaimRequest, taskTurn } from './task-world.ts';
import { ANN, BOB, begun, codeOf, opening, session, usage, WORKER, type World, worker } from './world.ts';

export function tasks(world: World): void {
  test('a plan is added as a whole, in order, and adding it again under its key changes nothing', async () => {
    const { store } = world;
    const [a, b] = [newTask(), newTask()];
    const plan = { plan: 'p', place: 'here', parallel: null, tasks: [a, { ...b, after: [a.id] }] };
    const first = await store.tasks.add(ANN, plan);
    expect(first.tasks).toMatchObject([
      { id: a.id, state: 'queued' },
      { id: b.id, state: 'waiting', after: [a.id] },
    ]);
    const [c, d] = [newTask(), newTask()];
    const again = await store.tasks.add(ANN, { ...plan, tasks: [c, { ...d, after: [c.id] }] });
    expect(again).toEqual({ tasks: first.tasks, duplicate: true });
    expect(await codeOf(store.tasks.add(ANN, { ...plan, tasks: [c] }))).toBe('conflict');
    expect(await codeOf(store.tasks.add(ANN, { ...plan, parallel: 2 }))).toBe('conflict');
    expect((await store.tasks.list(ANN, {}, { limit: 9 })).map(({ id }) => id)).toEqual([b.id, a.id]);
  });

  test('a plan has its tasks in their order, and only for its owner', async () => {
    const { store } = world;
    const [a, b] = [newTask(), newTask()];
    await addTasks(store, newTask());
    const { tasks } = await store.tasks.add(ANN, { plan: 'p', place: 'here', parallel: null, tasks: [b, a] });
    expect(await store.tasks.plan(ANN, 'p')).toEqual(tasks);
    expect(await store.tasks.plan(BOB, 'p')).toEqual([]);
    for (const none of ['q', 'p\ud800', 'p\0']) expect(await store.tasks.plan(ANN, none)).toEqual([]);
  });

  test('nothing is added of a plan with a fault', async () => {
    const { store, site } = world;
    await addTasks(store, newTask({ session: 's' }));
    const before = await site.contents();
    expect(await codeOf(addTasks(store, newTask(), newTask({ session: 's' })))).toBe('conflict');
    expect(await site.contents()).toBe(before);
  });

  test('a session that a task has named can be named by another when the task has ended', async () => {
    const { store } = world;
    const [first] = await added(store, { session: 's' });
    await store.tasks.requestCancel(ANN, first.id, 'ann');
    await addTasks(store, newTask({ session: 's' }));
    expect(await codeOf(store.tasks.retry(ANN, first.id, { by: 'ann', say: null }))).toBe('conflict');
  });

  test('the id of a new session is named by one open task, and is refused when a session had it', async () => {
    const { store } = world;
    const [first] = await added(store, { newSession: 's' });
    expect(first.newSession).toBe('s');
    expect(await codeOf(addTasks(store, newTask({ newSession: 's' })))).toBe('conflict');
    expect(await codeOf(addTasks(store, newTask({ session: 's' })))).toBe('conflict');
    const { holder } = await begun(store);
    const used = session({ id: 'used' });
    await holder.write(opening(used));
    expect(await codeOf(addTasks(store, newTask(), newTask({ newSession: 'used' })))).toBe('refused');
    expect(await codeOf(addTasks({ store, owner: BOB }, newTask({ newSession: 'used' })))).toBe('refused');
    expect((await store.tasks.list(ANN, {}, { limit: 9 })).map(({ id }) => id)).toEqual([first.id]);
    // Adding a plan again gives its tasks, also when the session of one exists by now.
    const plan = { plan: 'p', place: 'here', parallel: null };
    await store.tasks.add(ANN, { ...plan, tasks: [newTask({ newSession: 't' })] });
    await holder.write(opening(session({ id: 't' })));
    expect((await store.tasks.add(ANN, { ...plan, tasks: [newTask({ newSession: 't' })] })).duplicate).toBe(true);
    expect(await codeOf(store.tasks.add(ANN, { ...plan, tasks: [newTask()] }))).toBe('conflict');
  });

  test('tasks are found by id, and the newest by name; lists are filtered by state and milestone, in pages', async () => {
    const { store } = world;
    const [a] = await added(store, { name: 'n', milestone: 'm' });
    const [b] = await added(store, { name: 'n' });
    expect((await store.tasks.find(ANN, 'n'))?.id).toBe(b.id);
    expect((await store.tasks.find(ANN, a.id))?.name).toBe('n');
    expect(await store.tasks.find(ANN, 'none')).toBeNull();
    expect(await store.tasks.find(ANN, 'n\ud800')).toBeNull();
    const ids = async (...args: Parameters<Store['tasks']['list']> extends [string, ...infer R] ? R : never) =>
      (await store.tasks.list(ANN, ...args)).map(({ id }) => id);
    expect(await ids({}, { limit: 1 })).toEqual([b.id]);
    expect(await ids({}, { limit: 9, before: b.id })).toEqual([a.id]);
    expect(await ids({ milestone: 'm' }, { limit: 9 })).toEqual([a.id]);
    expect(await ids({ states: ['done'] }, { limit: 9 })).toEqual([]);
    expect(await ids({ states: ['queued'] }, { limit: 9 })).toEqual([b.id, a.id]);
  });

  test('a claim gets the oldest task under a new epoch, and nobody else gets it', async () => {
    const { store } = world;
    const [a, b] = await added(store, {}, {});
    const { fence, task, gate } = await claimTask(store);
    expect(fence).toEqual({ task: a.id, owner: ANN, epoch: 1 });
    expect(task).toMatchObject({ id: a.id, state: 'running' });
    expect(gate).toBeNull();
    expect((await claimTask(store, { worker: worker('w2', 2) })).task.id).toBe(b.id);
    expect(await store.tasks.claim(taskClaimRequest())).toBeNull();
  });

  test('a claim respects the limit over all runners, the wanted tasks and the place', async () => {
    const { store } = world;
    const [, b] = await added(store, {}, {});
    expect(await store.tasks.claim(taskClaimRequest({ place: 'elsewhere' }))).toBeNull();
    expect((await claimTask(store, { limit: 1, only: [b.id] })).task.id).toBe(b.id);
    expect(await store.tasks.claim(taskClaimRequest({ limit: 1, worker: worker('w2', 2) }))).toBeNull();
    expect(await store.tasks.claim(taskClaimRequest({ limit: 2, only: [b.id] }))).toBeNull();
    expect(await store.tasks.claim(taskClaimRequest({ limit: 2 }))).not.toBeNull();
  });

  test('no more tasks of a plan run at once than it allows, whichever runners work on them', async () => {
    const { store } = world;
    const tasks = [newTask(), newTask(), newTask(), newTask()];
    await store.tasks.add(ANN, { plan: 'p', place: 'here', parallel: 2, tasks });
    const [other] = await added(store, {});
    const first = await claimTask(store);
    await claimTask(store, { worker: worker('w2', 2) });
    expect((await claimTask(store)).task.id).toBe(other.id);
    expect(await store.tasks.claim(taskClaimRequest())).toBeNull();
    await finish(store, first);
    expect((await claimTask(store)).task.id).toBe(tasks[2]?.id);
    expect(await store.tasks.claim(taskClaimRequest())).toBeNull();
    await store.tasks.forgetHolder('w2');
    expect((await claimTask(store, { worker: worker('w3', 3) })).task.id).toBe(tasks[1]?.id);
    expect(await store.tasks.claim(taskClaimRequest())).toBeNull();
  });

  test('a plan may allow more at once than the usual limit, and other owners still get their turn', async () => {
    const { store } = world;
    const tasks = [newTask(), newTask(), newTask()];
    await store.tasks.add(ANN, { plan: 'p', place: 'here', parallel: 3, tasks });
    await addTasks({ store, owner: BOB }, newTask(), newTask());
    const claims: TaskClaim[] = [];
    for (let n = 0; n < 3; n += 1) claims.push(await claimTask(store, { limit: 1 }));
    expect(claims.map(({ task }) => task.owner)).toEqual([ANN, BOB, ANN]);
    expect(await store.tasks.claim(taskClaimRequest({ limit: 1 }))).toBeNull();
    for (const claim of claims) await finish(store, claim);
    await finish(store, await claimTask(store, { limit: 1, only: [tasks[2]?.id ?? ''] }));
    await claimTask(store, { limit: 1 }); // the plan has ended: the usual limit applies again
    await addTasks({ store, owner: BOB }, newTask());
    expect(await store.tasks.claim(taskClaimRequest({ limit: 1 }))).toBeNull();
  });

  test('owners take turns, however many tasks one of them has', async () => {
    const { store } = world;
    for (let n = 0; n < 4; n += 1) await addTasks(store, newTask());
    await addTasks({ store, owner: BOB }, newTask(), newTask());
    const order: string[] = [];
    for (let n = 0; n < 6; n += 1) {
      const claim = await claimTask(store, { limit: 1 });
      order.push(claim.task.owner);
      await finish(store, claim);
    }
    expect(order).toEqual([ANN, BOB, ANN, BOB, ANN, ANN]);
  });

  test('with several at once, the owner with the fewest running tasks comes first', async () => {
    const { store } = world;
    for (let n = 0; n < 3; n += 1) await addTasks(store, newTask());
    await addTasks({ store, owner: BOB }, newTask(), newTask());
    const claims: TaskClaim[] = [];
    for (let n = 0; n < 3; n += 1) claims.push(await claimTask(store, { limit: 9 }));
    expect(claims.map(({ task }) => task.owner)).toEqual([ANN, BOB, ANN]);
    await finish(store, claims[1] as TaskClaim);
    expect((await claimTask(store)).task.owner).toBe(BOB);
  });

  test('tasks of a milestone run one after another, and do not delay other tasks', async () => {
    const { store } = world;
    const [first, second, other] = await added(store, { milestone: 'm' }, { milestone: 'm' }, {});
    const claim = await claimTask(store);
    expect(claim.task.id).toBe(first.id);
    expect((await claimTask(store)).task.id).toBe(other.id);
    expect(await store.tasks.claim(taskClaimRequest())).toBeNull();
    await finish(store, claim);
    expect((await claimTask(store)).task.id).toBe(second.id);
  });

  test('milestones of different owners with the same name are independent', async () => {
    const { store } = world;
    await added(store, { milestone: 'm' });
    await addTasks({ store, owner: BOB }, newTask({ milestone: 'm' }));
    await claimTask(store);
    expect((await claimTask(store)).task.owner).toBe(BOB);
  });

  test('a task waits until all tasks that it depends on are done', async () => {
    const { store } = world;
    const [a, b] = [newTask(), newTask()];
    const c = { ...newTask(), after: [a.id, b.id] };
    await addTasks(store, a, b, c);
    const [one, two] = [await claimTask(store), await claimTask(store)];
    expect(await store.tasks.claim(taskClaimRequest())).toBeNull();
    await finish(store, one);
    expect(await store.tasks.claim(taskClaimRequest())).toBeNull();
    await finish(store, two);
    expect((await claimTask(store)).task.id).toBe(c.id);
  });

  test('a task that depends on a failed one waits, and continues when that one is done after a retry', async () => {
    const { store } = world;
    const a = newTask();
    const b = { ...newTask(), after: [a.id] };
    await addTasks(store, a, b);
    await finish(store, await claimTask(store), { decision: 'give-up', code: 'budget_spent', reason: 'x' }, 'failed');
    expect(await store.tasks.find(ANN, b.id)).toMatchObject({ state: 'waiting' });
    const again = await store.tasks.retry(ANN, a.id, { by: 'ann', say: 'Try harder.' });
    expect(again).toMatchObject({ state: 'queued', endedAt: null, progress: { round: 2, iteration: 1 } });
    await finish(store, await claimTask(store));
    expect(await store.tasks.find(ANN, b.id)).toMatchObject({ state: 'queued' });
  });

  test('a runner that lost its lease writes nothing', async () => {
    const { store, site } = world;
    await added(store, {});
    const old = await claimTask(store);
    site.pass(1_001);
    const next = await claimTask(store, { worker: worker('w2', 2) });
    expect(next.fence.epoch).toBe(2);
    const before = await site.contents();
    expect(await codeOf(finish(store, old))).toBe('lease_lost');
    await store.tasks.release(old.fence);
    expect(await store.tasks.renew([old.fence, next.fence], 1_000)).toEqual([old.fence]);
    expect(await site.contents()).toBe(before);
  });

  test('a renewed lease does not expire, and a released one is free', async () => {
    const { store, site } = world;
    await added(store, {});
    const { fence } = await claimTask(store);
    site.pass(900);
    expect(await store.tasks.renew([fence], 1_000)).toEqual([]);
    site.pass(900);
    expect(await store.tasks.claim(taskClaimRequest())).toBeNull();
    await store.tasks.release(fence);
    expect((await claimTask(store)).fence.epoch).toBe(2);
  });

  test('an expired lease can be claimed by another runner, and not by the one that still holds it', async () => {
    const { store, site } = world;
    const [{ id }] = await added(store, {});
    const { fence } = await claimTask(store);
    site.pass(1_001);
    expect(await store.tasks.claim(taskClaimRequest({ held: [id] }))).toBeNull();
    expect(await store.tasks.find(ANN, id)).toMatchObject({ state: 'running' });
    expect(await store.tasks.renew([fence], 1_000)).toEqual([]);
    site.pass(1_001);
    expect((await claimTask(store, { worker: worker('w2', 2) })).fence).toMatchObject({ task: id, epoch: 2 });
  });

  test('a jump of the wall clock expires no lease', async () => {
    const { store, site } = world;
    await added(store, {});
    await claimTask(store);
    site.jump(1_000_000);
    expect(await store.tasks.claim(taskClaimRequest())).toBeNull();
  });

  test('the tasks of a dead runner are free at once, in their order, with the process of their gate', async () => {
    const { store } = world;
    const [a, b] = await added(store, {}, {});
    const claim = await claimTask(store);
    await claimTask(store);
    const gate = { kind: 'test', id: '7', label: 'process 7' };
    await store.tasks.commit(claim.fence, { progress: claim.task.progress, gate, events: [] });
    expect(await store.tasks.holders()).toEqual([{ ...WORKER, expired: false }]);
    await store.tasks.forgetHolder(WORKER.id);
    expect(await store.tasks.holders()).toEqual([]);
    const again = await claimTask(store, { worker: worker('w2', 2) });
    expect([again.task.id, again.gate]).toEqual([a.id, gate]);
    expect((await claimTask(store)).task.id).toBe(b.id);
  });

  test('another machine takes a task only when its lease has expired', async () => {
    const { store, site } = world;
    await added(store, {});
    await claimTask(store);
    const other = await site.open({ boot: 'boot-2' });
    site.pass(999);
    expect(await other.tasks.claim(taskClaimRequest())).toBeNull();
    expect(await other.tasks.holders()).toEqual([{ ...WORKER, expired: false }]);
    site.pass(1);
    expect(await other.tasks.holders()).toEqual([{ ...WORKER, expired: true }]);
    expect((await claimTask(other)).fence.epoch).toBe(2);
  });

  test('a cancel ends a task that nobody runs at once, marks a running one, and leaves an ended one alone', async () => {
    const { store } = world;
    const [a, b] = await added(store, {}, {});
    const claim = await claimTask(store);
    expect(await store.tasks.requestCancel(ANN, a.id, 'ann')).toMatchObject({
      state: 'running',
      cancelRequested: true,
    });
    expect(await store.tasks.requestCancel(ANN, b.id, 'ann')).toMatchObject({ state: 'cancelled' });
    const done = await finish(store, claim);
    expect(await store.tasks.requestCancel(ANN, a.id, 'ann')).toEqual(done);
    expect(await codeOf(store.tasks.retry(ANN, a.id, { by: 'ann', say: null }))).toBe('conflict');
  });

  test('a cancelled task that was begun and released is claimed before all others, beyond the limit, to end it', async () => {
    const { store } = world;
    const [a, b] = await added(store, {}, {});
    const { fence, task } = await claimTask(store);
    await store.tasks.commit(fence, { progress: { ...task.progress, conversation: 'c' }, events: [] });
    await store.tasks.release(fence);
    await claimTask(store, { only: [b.id] });
    expect(await store.tasks.requestCancel(ANN, a.id, 'ann')).toMatchObject({ state: 'queued', cancelRequested: true });
    expect(await store.tasks.claim(taskClaimRequest({ limit: 1, only: [b.id] }))).toBeNull();
    const again = await claimTask(store, { limit: 1 });
    expect(again.task).toMatchObject({ id: a.id, cancelRequested: true });
    const { progress } = again.task;
    const ended = await store.tasks.commit(again.fence, { progress, state: 'cancelled', events: [] });
    expect(ended).toMatchObject({ state: 'cancelled', cancelRequested: false });
    const [last] = (await store.tasks.events(ANN, { after: 0, limit: 99, task: a.id })).toReversed();
    expect(last).toMatchObject({ kind: 'task.cancelled', payload: { by: 'ann' } });
  });

  test('a cancel is recorded only once, and survives the end of a runner', async () => {
    const { store } = world;
    const [a] = await added(store, {});
    await claimTask(store);
    await store.tasks.requestCancel(ANN, a.id, 'ann');
    await store.tasks.requestCancel(ANN, a.id, 'bob');
    await store.tasks.forgetHolder(WORKER.id);
    expect((await claimTask(store)).task.cancelRequested).toBe(true);
    const kinds = (await store.tasks.events(ANN, { after: 0, limit: 99 })).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'task.cancel_requested')).toHaveLength(1);
  });

  test('the events of all tasks of an owner are one stream, numbered without gaps', async () => {
    const { store } = world;
    const [a, b] = await added(store, {}, {});
    await addTasks({ store, owner: BOB }, newTask());
    await finish(store, await claimTask(store, { only: [a.id] }));
    const events = await store.tasks.events(ANN, { after: 0, limit: 99 });
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
    expect(events.map(({ kind, task }) => [kind, task])).toEqual([
      ['task.added', a.id],
      ['task.added', b.id],
      ['task.started', a.id],
      ['task.decided', a.id],
    ]);
    expect(await store.tasks.events(ANN, { after: 1, limit: 1 })).toEqual([events[1]]);
    expect(await store.tasks.events(ANN, { after: 0, limit: 9, task: b.id })).toEqual([events[1]]);
    expect(await store.tasks.events(BOB, { after: 0, limit: 9 })).toHaveLength(1);
    expect([await store.tasks.lastSeq(ANN), await store.tasks.lastSeq('nobody')]).toEqual([4, 0]);
  });

  test('an invalid decision is refused, and nothing of its commit is stored', async () => {
    const { store, site } = world;
    await added(store, {});
    const claim = await claimTask(store);
    const before = await site.contents();
    const bad = { ...DONE, decision: 'maybe' } as unknown as typeof DONE;
    expect(await codeOf(finish(store, claim, bad))).toBe('invalid');
    expect(await site.contents()).toBe(before);
  });

  test('the usage of turns is summed by day and task', async () => {
    const { store, site } = world;
    const [a, b] = await added(store, { name: 'a' }, { milestone: 'm' });
    const [one, two] = [await claimTask(store), await claimTask(store)];
    const spend = async ({ fence, task }: TaskClaim, ...turns: TaskTurn[]): Promise<TaskClaim> => {
      const progress = withTurns(task.progress, turns);
      return { fence, gate: null, task: await store.tasks.commit(fence, { progress, turns, events: [] }) };
    };
    const day = Date.UTC(2026, 0, 15, 12);
    const next = await spend(
      one,
      taskTurn({ usage: usage(3), endedAt: day }),
      taskTurn({ usage: usage(4), endedAt: day }),
    );
    await spend(next, taskTurn({ usage: usage(5), endedAt: day + 86_400_000 }));
    await spend(two, taskTurn({ usage: usage(6), endedAt: day }));
    site.pass(1);
    const all = await store.tasks.usage(ANN);
    expect(all).toEqual([
      { day: '2026-01-16', task: a.id, name: 'a', milestone: null, turns: 1, usage: usage(5) },
      { day: '2026-01-15', task: b.id, name: null, milestone: 'm', turns: 1, usage: usage(6) },
      { day: '2026-01-15', task: a.id, name: 'a', milestone: null, turns: 2, usage: { ...usage(7), modelCalls: 2 } },
    ]);
    for (const limit of [1, 2]) {
      const read = (before?: TaskUsageRow) => store.tasks.usage(ANN, { limit, ...(before && { before }) });
      expect(await Array.fromAsync(inPages(read))).toEqual(all);
      expect(await read()).toHaveLength(limit);
    }
    const nobodys = store.tasks.usage(ANN, { before: { day: '2026-01-15', task: 'no such task' } });
    expect(await codeOf(nobodys)).toBe('not_found');
    expect(await store.tasks.usage(ANN, { since: '2026-01-16' })).toHaveLength(1);
    expect((await store.tasks.find(ANN, a.id))?.progress).toMatchObject({ turns: 3, spent: { inputTokens: 12 } });
  });

  test('listeners in this and in another process are notified of changes of a task', async () => {
    const { store, site } = world;
    const other = await site.open();
    const notified: { here: string[]; there: string[] } = { here: [], there: [] };
    store.listen((moved) => notified.here.push(...(moved ?? [])));
    other.listen((moved) => notified.there.push(...(moved ?? [])));
    const [a] = await added(store, {});
    // A notification about the tasks of an earlier test may still come.
    const about = (ids: readonly string[]) => ids.filter((id) => id === a.id);
    await expect.poll(() => about(notified.there)).toEqual([a.id]);
    expect(about(notified.here)).toEqual([a.id]);
  });

  test('another owner can neither see nor change a task', async () => {
    const { store, site } = world;
    const [a] = await added(store, { name: 'anns' });
    const claim = await claimTask(store);
    const before = await site.contents();
    const bobs = { ...claim.fence, owner: BOB };
    expect(await store.tasks.find(BOB, a.id)).toBeNull();
    expect(await store.tasks.find(BOB, 'anns')).toBeNull();
    expect(await store.tasks.list(BOB, {}, { limit: 9 })).toEqual([]);
    expect(await store.tasks.events(BOB, { after: 0, limit: 9 })).toEqual([]);
    expect(await store.tasks.usage(BOB)).toEqual([]);
    const refused = [
      store.tasks.events(BOB, { after: 0, limit: 9, task: a.id }),
      store.tasks.list(BOB, {}, { limit: 9, before: a.id }),
      store.tasks.requestCancel(BOB, a.id, 'bob'),
      store.tasks.retry(BOB, a.id, { by: 'bob', say: null }),
      store.tasks.release(bobs),
      store.tasks.commit(bobs, { progress: claim.task.progress, events: [] }),
    ];
    expect(await Promise.all(refused.map(codeOf))).toEqual(refused.map(() => 'not_found'));
    expect(await store.tasks.renew([bobs], 5)).toEqual([bobs]);
    expect(await site.contents()).toBe(before);
  });
}
