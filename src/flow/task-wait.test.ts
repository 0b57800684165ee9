import { expect, test } from 'vitest';
import type { PublicTask } from '../core/public/task.ts';
import type { TaskState } from '../core/tasks/task.ts';
import { TaskWait, waitForTasks } from './task-wait.ts';

/** Tasks with the tasks they depend on; those without any are running. Counts how often `after` is read. */
function world(plan: Record<string, string[]>, mostLooks = Number.POSITIVE_INFINITY) {
  const states = new Map<string, TaskState>();
  for (const [id, after] of Object.entries(plan)) states.set(id, after.length > 0 ? 'waiting' : 'running');
  let looks = 0;
  const find = async (id: string) => {
    const task = { id, state: states.get(id) };
    const after = () => {
      looks += 1;
      if (looks > mostLooks) throw new Error(`looked at more than ${mostLooks} times`);
      return plan[id];
    };
    return Object.defineProperty(task, 'after', { get: after }) as unknown as PublicTask;
  };
  return { states, wait: new TaskWait(find) };
}

test('waiting looks at each task once, however many paths lead through the plan', async () => {
  const plan: Record<string, string[]> = { a0: [], b0: [] };
  for (let i = 1; i <= 60; i += 1) {
    for (const name of ['a', 'b']) plan[`${name}${i}`] = [`a${i - 1}`, `b${i - 1}`];
  }
  const { states, wait } = world(plan, 1_000);
  await wait.begin(['a60']);
  expect(wait.isOver).toBe(false);
  states.set('b0', 'failed');
  await wait.moved('b0');
  expect(wait.isOver).toBe(true);
});

test('the wait is over when a task is blocked by one that needs a person or has ended without success', async () => {
  const { states, wait } = world({ a: [], b: ['a'], c: ['b'] });
  await wait.begin(['c']);
  for (const [state, over] of [
    ['queued', false],
    ['asking', true],
    ['done', false],
    ['cancelled', true],
  ] as const) {
    states.set('a', state);
    await wait.moved('a');
    expect([state, wait.isOver]).toEqual([state, over]);
  }
});

test('waiting reads a task once per decision, not again for the turn and the gate stored with it', async () => {
  const states: TaskState[] = ['running', 'running', 'done'];
  let reads = 0;
  const task = async () => {
    reads += 1;
    return { id: 'a', after: [], state: states.shift() } as unknown as PublicTask;
  };
  async function* follow() {
    for (const kind of ['task.turned', 'task.gated', 'task.decided', 'task.turned', 'task.decided'] as const) {
      yield { taskId: 'a', kind };
    }
  }
  const [last] = await waitForTasks({ task, lastSeq: async () => 0, follow }, ['a'], undefined);
  expect([last?.state, reads]).toEqual(['done', 3]);
});
