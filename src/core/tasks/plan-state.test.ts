import { expect, test } from 'vitest';
import { type PlannedTask, planStateOf } from './plan-state.ts';
import type { Decision, TaskState } from './task.ts';

const stranded = {
  reason: 'other_home',
  message: 'Task x runs only there.',
  hint: 'Start "throughline serve".',
} as const;
const gaveUp: Decision = {
  decision: 'give-up',
  code: 'iterations_spent',
  reason: 'The gate has not passed in 3 turns.',
};

function task(id: string, state: TaskState, set: Partial<PlannedTask> = {}): PlannedTask {
  return { id, name: id, state, after: [], decision: null, stranded: null, ...set };
}
const after = (...ids: string[]) => ({ after: ids });

test.each<[string, PlannedTask[], string, string[]]>([
  ['all are done', [task('a', 'done'), task('b', 'done')], 'settled', []],
  ['one is queued', [task('a', 'done'), task('b', 'queued')], 'running', []],
  ['one runs, and others wait for it', [task('a', 'running'), task('b', 'waiting', after('a'))], 'running', []],
  ['the only one has failed', [task('a', 'failed')], 'settled', []],
  ['the last one has failed', [task('a', 'done'), task('b', 'failed', after('a'))], 'settled', []],
  ['one was cancelled, and nobody waits', [task('a', 'cancelled'), task('b', 'done')], 'settled', []],
  ['the only one asks', [task('a', 'asking')], 'needs_person', ['a']],
  [
    'the middle one asks, and another waits',
    [task('a', 'done'), task('b', 'asking', after('a')), task('c', 'waiting', after('b'))],
    'needs_person',
    ['b'],
  ],
  [
    'the first one has failed, and others wait in a row',
    [task('a', 'failed'), task('b', 'waiting', after('a')), task('c', 'waiting', after('b'))],
    'needs_person',
    ['a'],
  ],
  [
    'one was cancelled, and another waits for it',
    [task('a', 'cancelled'), task('b', 'waiting', after('a'))],
    'needs_person',
    ['a'],
  ],
  [
    'one waits for a failed task, which is enough, and for one that runs',
    [task('a', 'failed'), task('b', 'running'), task('c', 'waiting', after('a', 'b'))],
    'running',
    ['a'],
  ],
  [
    'one waits for a failed task and for one that is done',
    [task('a', 'failed'), task('b', 'done'), task('c', 'waiting', after('b', 'a'))],
    'needs_person',
    ['a'],
  ],
  ['one asks while another runs', [task('a', 'asking'), task('b', 'running')], 'running', ['a']],
  ['one has no process', [task('a', 'queued', { stranded })], 'needs_person', ['a']],
  [
    'the tasks behind a failed one were cancelled',
    [task('a', 'failed'), task('b', 'cancelled', after('a'))],
    'settled',
    [],
  ],
])('the state of a plan: %s', (_, tasks, state, needs) => {
  const found = planStateOf(tasks);
  expect([found.state, found.needs.map(({ taskId }) => taskId)]).toEqual([state, needs]);
});

test.each<[string, PlannedTask, string, string]>([
  [
    'an asking task',
    task('b', 'asking', { decision: { decision: 'ask', code: 'turn_failed', reason: 'Its turn failed: no.' } }),
    'The task "b" asks a person: Its turn failed: no. 1 task waits for it.',
    '"throughline task retry b --say TEXT" continues it (over HTTP: POST /v1/tasks/b/retry); ' +
      '"throughline task cancel NAME" ends the tasks that wait.',
  ],
  [
    'a failed task',
    task('b', 'failed', { decision: gaveUp, name: null }),
    'The task b has failed: The gate has not passed in 3 turns. 1 task waits for it.',
    'retry b --say TEXT"',
  ],
  [
    'a task whose budget is spent',
    task('b', 'failed', { decision: { decision: 'give-up', code: 'budget_spent', reason: 'Spent.' } }),
    'The task "b" has failed: Spent. 1 task waits for it.',
    'retry b --budget AMOUNT"',
  ],
  [
    'a task whose questions were denied',
    task('b', 'asking', { decision: { decision: 'ask', code: 'permission_denied', reason: 'Denied.' } }),
    'The task "b" asks a person: Denied. 1 task waits for it.',
    'retry b --permissions ask"',
  ],
  [
    'a cancelled task, whose last decision was another',
    task('b', 'cancelled', { decision: gaveUp }),
    'The task "b" was cancelled. 1 task waits for it.',
    'retry b --say TEXT"',
  ],
  [
    'a task of another data home',
    task('b', 'queued', { stranded }),
    'The task "b": Task x runs only there.',
    'Start "throughline serve".',
  ],
])('what is said of %s', (_, one, message, hint) => {
  const [need, ...others] = planStateOf([one, task('c', 'waiting', after('b'))]).needs;
  expect(others).toEqual([]);
  expect(need?.message).toBe(message);
  expect(need?.hint).toContain(hint);
});

test('the state of a plan with very many paths is found at once', () => {
  const tasks = [task('a0', 'failed'), task('b0', 'done')];
  for (let i = 1; i <= 400; i += 1) {
    for (const name of ['a', 'b']) tasks.push(task(`${name}${i}`, 'waiting', after(`b${i - 1}`, `a${i - 1}`)));
  }
  expect(planStateOf(tasks).state).toBe('needs_person');
});
