import { expect, test } from 'vitest';
import type { ProcessIdentity } from '../process.ts';
import type { Task } from './task.ts';
import { type TaskRunnerFacts, whyTaskStranded } from './task-standing.ts';

const task = { place: 'here' } as Task;
const [living, dead, unseen] = (['alive', 'dead', 'unknown'] as const).map(
  (boot) => ({ boot }) as unknown as ProcessIdentity,
) as [ProcessIdentity, ProcessIdentity, ProcessIdentity];
const taker = { place: 'here', agents: [], process: living, quietMs: 0 };
const facts: TaskRunnerFacts = {
  ...{ here: true, home: null, takers: [], holders: [], store: 'postgres://db/all' },
  status: ({ boot }) => boot as unknown as 'alive' | 'dead',
};

test.each<[string, Partial<TaskRunnerFacts>, string | null]>([
  ['nobody', {}, 'no_process'],
  ['a server of its data home', { takers: [taker] }, null],
  ['a server of another data home', { takers: [{ ...taker, place: 'there' }] }, 'no_process'],
  ['a server that is dead', { takers: [{ ...taker, process: dead }] }, 'no_process'],
  ['a process that works on other tasks', { holders: [{ process: living, expired: true }] }, null],
  ['a process that is dead', { holders: [{ process: dead, expired: false }] }, 'no_process'],
  ['a process on another machine', { holders: [{ process: unseen, expired: false }] }, null],
  ['a process on another machine whose lease is over', { holders: [{ process: unseen, expired: true }] }, 'no_process'],
  ['nobody, and it belongs to another data home', { here: false, home: '/there' }, 'other_home'],
])('a queued task and %s', (_, known, reason) => {
  expect(whyTaskStranded(task, { ...facts, ...known })?.reason ?? null).toBe(reason);
});

test('the data home that runs it is named', () => {
  const stranded = whyTaskStranded(task, { ...facts, here: false, home: '/there' });
  expect(stranded?.hint).toBe('Start "throughline serve --home /there --store postgres://db/all".');
});
