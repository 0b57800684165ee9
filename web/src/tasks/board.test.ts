import type { Task } from 'throughline/client';
import { expect, test } from 'vitest';
import { NO_USAGE } from '../../../src/core/turn/usage.ts';
import { canBe, columnsOf, dotsOf, milestonesOf, spentShare } from './board.ts';

function task(state: Task['state'], more: object = {}): Task {
  const progress = { iteration: 2, spent: NO_USAGE };
  const budget = { costMicros: null, tokens: null };
  return {
    id: state,
    state,
    maxIterations: 3,
    milestone: null,
    cancelRequested: false,
    budget,
    progress,
    ...more,
  } as Task;
}

test('every state has its column', () => {
  const states = ['waiting', 'queued', 'running', 'asking', 'done', 'failed', 'cancelled'] as const;
  const columns = columnsOf(
    states.map((state) => task(state)),
    null,
  );
  expect(columns.flatMap(({ tasks }) => tasks)).toHaveLength(states.length);
  expect(columns.map(({ title, tasks }) => [title, tasks.length])).toEqual([
    ['Needs you', 1],
    ['Running', 1],
    ['Waiting', 2],
    ['Done', 1],
    ['Failed or cancelled', 2],
  ]);
});

test('a milestone shows its own tasks', () => {
  const tasks = [task('done', { milestone: 'b' }), task('failed', { milestone: 'a' }), task('running')];
  expect(milestonesOf(tasks)).toEqual(['a', 'b']);
  expect(columnsOf(tasks, 'a').flatMap(({ tasks: own }) => own.map(({ id }) => id))).toEqual(['failed']);
});

test.each([
  ['running', ['done', 'current', 'left']],
  ['asking', ['done', 'current', 'left']],
  ['queued', ['current', 'left', 'left']],
  ['done', ['done', 'done', 'left']],
] as const)('the dots of a task that is %s in its second iteration', (state, dots) => {
  expect(dotsOf(task(state))).toEqual(dots);
});

test('no dots are shown for many iterations', () => {
  expect(dotsOf(task('running', { maxIterations: 50 }))).toBeNull();
});

test('of two budgets, the one with the larger spent share is shown', () => {
  expect(spentShare(task('running'))).toBeNull();
  const progress = { iteration: 1, spent: { ...NO_USAGE, costMicros: 500, inputTokens: 90 } };
  expect(spentShare(task('running', { budget: { costMicros: 1_000, tokens: 100 }, progress }))).toBe(0.9);
});

test('a task that has ended cannot be cancelled, and one that is done cannot be retried', () => {
  expect(canBe(task('running'))).toEqual({ cancelled: true, retried: false });
  expect(canBe(task('running', { cancelRequested: true })).cancelled).toBe(false);
  expect(canBe(task('asking'))).toEqual({ cancelled: true, retried: true });
  expect(canBe(task('failed'))).toEqual({ cancelled: false, retried: true });
  expect(canBe(task('done'))).toEqual({ cancelled: false, retried: false });
});
