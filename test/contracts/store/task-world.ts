// Helpers for tests of tasks in a store. They work with every store.
import type { Decision, Task, TaskTurn } from '../../../src/core/tasks/task.ts';
import { parsePlan } from '../../../src/core/tasks/task-plan.ts';
import { withDecision } from '../../../src/core/tasks/task-progress.ts';
import { NO_USAGE } from '../../../src/core/turn/usage.ts';
import type { NewTask, TaskChange, TaskClaim, TaskClaimRequest } from '../../../src/ports/store/tasks.ts';
import type { Store } from '../../../src/ports/store.ts';
import { AGENT, ANN, fresh, WORKER } from './world.ts';

const HERE = 'here';
export const DONE: Decision = { decision: 'done', code: 'no_gate', reason: 'It completed.' };

export function newTask(set: Partial<NewTask> = {}): NewTask {
  const [spec] = parsePlan({ goal: 'Do it.' }).tasks;
  return { ...(spec as NewTask), id: fresh('task'), agent: AGENT, sessions: 'kept', ...set };
}

export async function addTasks(to: Store | { store: Store; owner: string }, ...tasks: NewTask[]): Promise<Task[]> {
  const { store, owner } = 'owner' in to ? to : { store: to, owner: ANN };
  return (await store.tasks.add(owner, { plan: fresh('plan'), place: HERE, parallel: null, tasks })).tasks;
}

/** Adds tasks of Ann, one for each description. */
export async function added<T extends Partial<NewTask>[]>(store: Store, ...sets: T): Promise<{ [K in keyof T]: Task }> {
  return (await addTasks(store, ...sets.map(newTask))) as { [K in keyof T]: Task };
}

export function taskClaimRequest(set: Partial<TaskClaimRequest> = {}): TaskClaimRequest {
  return { worker: WORKER, place: HERE, leaseMs: 1_000, limit: 9, ...set };
}

export async function claimTask(store: Store, set: Partial<TaskClaimRequest> = {}): Promise<TaskClaim> {
  const claimed = await store.tasks.claim(taskClaimRequest(set));
  if (claimed === null) throw new Error('There was no task to claim.');
  return claimed;
}

/** Ends a task that is held. */
export function finish(
  store: Store,
  { fence, task }: TaskClaim,
  decision = DONE,
  state: NonNullable<TaskChange['state']> = 'done',
): Promise<Task> {
  const { round, iteration } = task.progress;
  const progress = withDecision(task.progress, decision, null, null);
  const events = [{ kind: 'task.decided', payload: { ...decision, round, iteration, state } }] as const;
  return store.tasks.commit(fence, { progress, state, events });
}

export function taskTurn(set: Partial<TaskTurn> = {}): TaskTurn {
  return {
    purpose: 'work',
    round: 1,
    iteration: 1,
    turn: fresh('turn'),
    conversation: 'conversation',
    agent: AGENT,
    outcome: 'completed',
    failure: null,
    sessionId: null,
    rung: null,
    usage: NO_USAGE,
    lockWaits: { count: 0, ms: 0 },
    denied: [],
    endedAt: 5,
    ...set,
  };
}
