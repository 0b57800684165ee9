// Tasks embedded, over the unix socket and with `fetch`: the same calls give the same results and the same errors.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PublicTaskUsageRow } from '../../../src/core/public/task.ts';
import { inPages } from '../../../src/flow/pages.ts';
import type { Task, TaskEvent } from '../../../src/index.ts';
import type { Tasks } from '../../../src/ports/tasks.ts';
import { until } from '../../faults/harness/until.ts';
import { Home } from '../support/home.ts';
import { reachBy, type Way } from '../support/way.ts';
import { comparable, outcome, withoutError } from './support/same.ts';

const WAYS: readonly Way[] = ['embedded', 'socket', 'tcp'];
/** One task at a time, so that it is known which one waits. */
const SETTINGS = {
  agents: { a: { adapter: 'scripted' }, forgetful: { adapter: 'scripted', options: { resume: 'none' } } },
  defaultAgent: 'a',
  tasks: { parallel: 1 },
} as const;

const results = new Map<Way, { readonly answers: Record<string, unknown>; readonly errors: Record<string, unknown> }>();

beforeAll(async () => {
  for (const way of WAYS) {
    reachBy(way);
    await using home = new Home();
    const { tasks } = await home.open({}, { settings: SETTINGS });
    mkdirSync(join(home.path, 'inner'));
    const answers = comparable(await callEverything(tasks, home.path), home.path) as Record<string, unknown>;
    const errors = comparable(await callInvalidly(tasks, home.path), home.path) as Record<string, unknown>;
    results.set(way, { answers, errors });
  }
});
afterAll(() => reachBy('embedded'));

test.each(['socket', 'tcp'] as const)('by %s every method returns the same as embedded', (way) => {
  expect(results.get(way)?.answers).toEqual(results.get('embedded')?.answers);
});

test.each(['socket', 'tcp'] as const)('by %s every error has the same code, message and hint as embedded', (way) => {
  expect(results.get(way)?.errors).toEqual(results.get('embedded')?.errors);
  expect(withoutError(results.get('embedded')?.errors ?? {})).toEqual([]);
});

/** Calls every method, one after the other, and returns all results. */
async function callEverything(tasks: Tasks, home: string) {
  const plan = {
    defaults: { gate: 'test -f made', cwd: 'inner' },
    tasks: [
      { name: 'second/é?', goal: 'x', after: 'first', milestone: 'm 1' },
      { name: 'first', goal: '/usage 7 5\n/tool touch made', budget: { tokens: 1_000 } },
    ],
  };
  const options = { requestId: 'nightly', base: home };
  const added = await tasks.add(plan, options);
  const ended = await tasks.waitFor(added.tasks.map(({ id }) => id));
  const again = await tasks.add(plan, options);
  const ran = await tasks.run({ name: '...', goal: 'hello' });
  const [usage] = await tasks.run([{ name: 'usage', goal: 'hello', gate: 'false', maxIterations: 1 }]);
  const retried = await tasks.retry('usage', {
    say: 'Go on.',
    budget: { usd: 2, tokens: 9_000 },
    maxIterations: 1,
    permissions: 'ask',
  });
  const failed = await tasks.waitFor(['usage']);
  const cwd = join(home, 'inner');
  const { tasks: hanging } = await tasks.add({ name: 'stuck', goal: '/tool touch begun\n/hang', cwd });
  await waitForEvent(tasks, (event) => event.kind === 'task.opened' && event.taskId === hanging[0]?.id);
  const { tasks: behind } = await tasks.add({ name: 'behind', goal: 'x' });
  await until('the agent is at work', () => existsSync(join(cwd, 'begun')));
  const open = await tasks.resume();
  const left = await tasks.waitFor(['stuck'], { signal: AbortSignal.abort() });
  const queued = await tasks.cancel('behind');
  await tasks.cancel('stuck');
  const cancelled = await tasks.waitFor(['stuck', 'behind']);
  const last = await tasks.lastSeq();
  const events = await eventsUpTo(tasks, last);
  const ofUsage = events.findLast(({ taskId }) => taskId === usage?.id);
  const all = await tasks.list();
  const other = tasks.as('Zoë');
  const spentAfter = (last?: PublicTaskUsageRow) => tasks.usage({ limit: 1, ...(last && { before: last }) });
  return {
    ...{ owner: tasks.owner, added, ended, again, ran, usage, retried, failed, hanging, behind, open, queued, last },
    ...{ cancelled, all, left: left.map(({ name }) => name) },
    pages: [await tasks.list({ limit: 2 }), await tasks.list({ limit: 2, before: (all[1] as Task).id })],
    named: [await tasks.task('second/é?'), await tasks.task('...'), await tasks.task('usage')],
    filtered: await tasks.list({ states: ['failed', 'cancelled'] }),
    none: [
      await tasks.list({ states: [] }),
      await tasks.list({ milestone: 'm 2' }),
      await tasks.usage({ since: '2999-01-01' }),
    ],
    milestone: await tasks.list({ milestone: 'm 1', states: ['done'] }),
    report: await tasks.report('second/é?'),
    spent: (await tasks.usage()).filter(({ name }) => name !== 'stuck'),
    spentPages: (await Array.fromAsync(inPages(spentAfter))).filter(({ name }) => name !== 'stuck'),
    events,
    ofOne: await eventsUpTo(tasks, ofUsage?.seq ?? 0, { task: 'usage' }),
    others: [await other.list(), await other.lastSeq(), (await other.run({ goal: 'hello' })).map(({ owner }) => owner)],
  };
}

/** Waits for an event, which may also be an earlier one. */
async function waitForEvent(tasks: Tasks, wanted: (event: TaskEvent) => boolean): Promise<void> {
  for await (const event of tasks.follow()) if (wanted(event)) return;
}

/** The events from the second one to the one with this number. */
async function eventsUpTo(tasks: Tasks, last: number, only: { task?: string } = {}): Promise<TaskEvent[]> {
  const events: TaskEvent[] = [];
  const stop = new AbortController();
  for await (const event of tasks.follow({ after: 1, signal: stop.signal, ...only })) {
    events.push(JSON.parse(JSON.stringify(event).replace(' by token', ''))); // over HTTP, `by` also names the token
    if (event.seq === last) stop.abort();
  }
  return events;
}

/** Makes invalid calls, and returns their results by what is wrong. */
async function callInvalidly(tasks: Tasks, home: string) {
  const lines = { locate: (path: readonly (string | number)[]) => `tasks.yaml, ${path.join(' ')}: `, base: home };
  const two = (more: object) => [{ goal: 'x' }, { goal: 'y', ...more }];
  const next = (options: object) => () => tasks.follow(options)[Symbol.asyncIterator]().next();
  const wrong: Record<string, () => unknown> = {
    'an unknown task': () => tasks.task('nope'),
    'an empty name': () => tasks.task(''),
    'an unpaired surrogate': () => tasks.report('\ud800'),
    'a name too long': () => tasks.task('x'.repeat(600)),
    'a name of dots': () => tasks.task('.'),
    'a task with a name of dots': () => tasks.add({ name: '..', goal: 'x' }),
    'the name of another operation': () => tasks.report('events'),
    'an unknown task to cancel': () => tasks.cancel('nope'),
    'an unknown task to retry': () => tasks.retry('nope'),
    'a retry of a task that is done': () => tasks.retry('first'),
    'an unknown task to wait for': () => tasks.waitFor(['first', 'nope']),
    'an unknown state': () => tasks.list({ states: ['done', 'lost' as 'done'] }),
    'a limit of zero': () => tasks.list({ limit: 0 }),
    'usage since an invalid day': () => tasks.usage({ since: 'today' }),
    'usage before an unknown task': () => tasks.usage({ before: { day: '2026-01-31', taskId: 'nope' } }),
    'a page before an unknown task': () => tasks.list({ before: 'nope' }),
    'a blank text': () => tasks.retry('usage', { say: ' ' }),
    'a budget without a unit': () => tasks.retry('usage', { budget: '5' }),
    'a budget with an unknown unit': () => tasks.retry('usage', { budget: { euros: 5 } as object }),
    'no iterations': () => tasks.retry('usage', { maxIterations: 0 }),
    'unknown permissions': () => tasks.retry('usage', { permissions: 'maybe' as 'ask' }),
    'no plan': () => tasks.add(undefined as never),
    'a blank goal': () => tasks.add({ goal: ' ' }),
    'an unknown field': () => tasks.add({ tasks: two({ colour: 'red' }) }, lines),
    'a blank request id': () => tasks.add({ goal: 'x' }, { requestId: ' ' }),
    'another plan under the same id': () => tasks.add({ goal: 'other' }, { requestId: 'nightly' }),
    'an unknown agent': () => tasks.add({ goal: 'x', agent: 'nobody' }),
    'an unknown agent in a list': () => tasks.add(two({ agent: 'nobody' })),
    'an unknown agent in a file': () => tasks.add({ tasks: two({ agent: 'nobody' }) }, lines),
    'an unknown judge in a file': () => tasks.add(two({ gate: { agent: 'nobody' } }), lines),
    'sessions that cannot be kept': () => tasks.add(two({ agent: 'forgetful', sessions: 'kept' }), lines),
    'a session that cannot be reopened': () => tasks.add(two({ agent: 'forgetful', session: 's' }), lines),
    'a directory that does not exist': () => tasks.add({ tasks: two({ cwd: './no/../where' }) }, lines),
    'a directory of this process that does not exist': () => tasks.add({ goal: 'x', cwd: '../no where' }),
    'events of an unknown task': next({ task: 'nope' }),
    'events before the first': next({ after: -1 }),
    'a blank owner': () => tasks.as(' '),
  };
  const outcomes: Record<string, unknown> = {};
  for (const [name, call] of Object.entries(wrong)) outcomes[name] = await outcome(call);
  expect(await tasks.resume()).toEqual([]); // none of these calls has added a task
  return outcomes;
}
