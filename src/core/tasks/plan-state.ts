import type { Stranded } from '../turn/standing.ts';
import { type Decision, type Task, type TaskState, taskHasEnded } from './task.ts';

/*
 * Where a plan is. A task that comes after one that asks, or that has failed, waits until a person decides; so a plan may be over although
 * some of its tasks never ran.
 */

/**
 * `running`: at least one task can still change without a person. `needs_person`: none can, and at least one task asks, keeps others waiting
 * or has no process. `settled`: every task has ended.
 */
export const PLAN_STATES = ['running', 'needs_person', 'settled'] as const;
/**
 * Where a plan is.
 *
 * @example
 * import type { PlanState } from 'throughline';
 *
 * const isOver = (state: PlanState) => state !== 'running';
 */
export type PlanState = (typeof PLAN_STATES)[number];

/**
 * What a person has to do for a task, and how.
 *
 * @example
 * const { needs } = await tl.tasks.plan('nightly', { waitMs: 60_000 });
 * for (const { taskId, message, hint } of needs) console.log(taskId, message, hint);
 */
export interface PlanNeed {
  readonly taskId: string;
  readonly message: string;
  readonly hint: string;
}

type Standing = Pick<Task, 'id' | 'state' | 'after'>;

/** A task of a plan, as its state is decided. */
export interface PlannedTask extends Standing {
  readonly name: string | null;
  /** The last one; null: none yet. */
  readonly decision: Decision | null;
  readonly stranded: Stranded | null;
}

/** The state of a plan, and what needs a person, in the order of the plan: also while other tasks can still change. */
export function planStateOf(tasks: readonly PlannedTask[]): { state: PlanState; needs: PlanNeed[] } {
  const waiting = new Map<string, number>();
  for (const { state, after } of tasks) {
    if (state === 'waiting') for (const id of new Set(after)) waiting.set(id, (waiting.get(id) ?? 0) + 1);
  }
  const needs = tasks.flatMap((task) => needOf(task, waiting.get(task.id) ?? 0) ?? []);
  const resting = tasksAtRest(tasks, ({ stranded }) => stranded !== null);
  if (resting.size < tasks.length) return { state: 'running', needs };
  return { state: needs.length > 0 ? 'needs_person' : 'settled', needs };
}

/**
 * The tasks that change no more without a person: those that have ended, that ask, that are stuck, and those that wait for such a task.
 * A task that comes after one that is not given can still change.
 */
export function tasksAtRest<T extends Standing>(
  tasks: Iterable<T>,
  isStuck: (task: T) => boolean,
): ReadonlySet<string> {
  const byId = new Map([...tasks].map((task) => [task.id, task]));
  const known = new Map<string, boolean>();
  // Remembers answers, because a plan may have very many paths.
  const isAtRest = (task: T): boolean => {
    const answer = known.get(task.id) ?? (task.state === 'waiting' ? task.after.some(blocks) : rests(task));
    known.set(task.id, answer);
    return answer;
  };
  const rests = (task: T) => taskHasEnded(task.state) || task.state === 'asking' || isStuck(task);
  const blocks = (id: string): boolean => {
    const first = byId.get(id);
    return first !== undefined && first.state !== 'done' && isAtRest(first);
  };
  return new Set([...byId.values()].filter(isAtRest).map(({ id }) => id));
}

const WHAT: Partial<Record<TaskState, string>> = {
  asking: 'asks a person',
  failed: 'has failed',
  cancelled: 'was cancelled',
};
/** Without it, a retry of the task would end with the same decision. */
const RETRY_WITH: Partial<Record<Decision['code'], string>> = {
  budget_spent: '--budget AMOUNT',
  cost_unknown: '--budget "N tokens"',
  permission_denied: '--permissions ask',
};

/** Null: it needs nobody. `waiting`: how many tasks wait for it. */
function needOf({ id, name, state, decision, stranded }: PlannedTask, waiting: number): PlanNeed | null {
  const task = name === null ? `The task ${id}` : `The task "${name}"`;
  if (stranded !== null) return { taskId: id, message: `${task}: ${stranded.message}`, hint: stranded.hint };
  const what = WHAT[state];
  if (what === undefined || (taskHasEnded(state) && waiting === 0)) return null;
  const last = state === 'cancelled' ? null : decision;
  const behind = waiting === 0 ? '' : ` ${waiting} ${waiting === 1 ? 'task waits' : 'tasks wait'} for it.`;
  const how = (last && RETRY_WITH[last.code]) ?? '--say TEXT';
  const retry = `"throughline task retry ${id} ${how}" continues it (over HTTP: POST /v1/tasks/${id}/retry)`;
  const or = waiting === 0 ? '' : '; "throughline task cancel NAME" ends the tasks that wait';
  return {
    taskId: id,
    message: `${task} ${what}${last === null ? '.' : `: ${last.reason}`}${behind}`,
    hint: `${retry}${or}.`,
  };
}
