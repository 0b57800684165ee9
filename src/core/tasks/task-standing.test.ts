import { expect, test } from 'vitest';
import type { ProcessIdentity } from '../process.ts';
import type { Task } from './task.ts';
import { type TaskRunnerFacts, whyTaskStranded } from './task-standing.ts';

const task = { place: 'here' } as Task;
const [living, dead] = ['alive', 'dead'].map((boot) => ({ boot }) as unknown as ProcessIdentity);
const taker = { place: 'here', agents: [], process: living as ProcessIdentity, quietMs: 0 };
const facts: TaskRunnerFacts = {
  ...{ here: true, home: null, takers: [], holders: [] },
  status: ({ boot }) => boot as unknown as 'alive' | 'dead',
};

test.each<[string, Partial<TaskRunnerFacts>, string | null]>([
  ['nobody', {}, 'no_process'],
  ['a server of its data home', { takers: [taker] }, null],
  ['a server of another data home', { takers: [{ ...taker, place: 'there' }] }, 'no_process'],
  ['a server that is dead', { takers: [{ ...taker, process: dead as ProcessIdentity }] }, 'no_process'],
  ['a process that works on other tasks', { holders: [{ process: living as ProcessIdentity }] }, null],
  ['a process that is dead', { holders: [{ process: dead as ProcessIdentity }] }, 'no_process'],
  ['nobody, and it belongs to another data home', { here: false, home: '/there' }, 'other_home'],
])('a queued task and %s', (_, known, reason) => {
  expect(whyTaskStranded(task, { ...facts, ...known })?.reason ?? null).toBe(reason);
});

test('the data home that runs it is named', () => {
  const stranded = whyTaskStranded(task, { ...facts, here: false, home: '/there' });
  expect(stranded?.hint).toBe('Start "throughline serve --home /there".');
});
