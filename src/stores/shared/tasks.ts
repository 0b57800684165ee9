// The rows of tasks, and what every store decides about them.

import { ThroughlineError } from '../../core/errors.ts';
import {
  ERASED,
  type Task,
  type TaskEventKind,
  type TaskEventPayloads,
  type TaskProgress,
  type TaskSpec,
  type TaskState,
  taskHasEnded,
} from '../../core/tasks/task.ts';
import { retriedProgress } from '../../core/tasks/task-progress.ts';
import type { NewPlan, NewTask, TaskFence, TaskRetry } from '../../ports/store/tasks.ts';
import { canonicalHash } from './content.ts';

/** The columns of `tasks` that are used as they are. */
export interface TaskRow {
  readonly no: number;
  readonly owner: string;
  readonly id: string;
  readonly plan: string;
  readonly place: string;
  readonly plan_hash: Uint8Array;
  readonly session: string | null;
  readonly spec: string;
  readonly progress: string;
  readonly state: TaskState;
  readonly cancel_by: string | null;
  readonly epoch: number;
  readonly gate: string | null;
  readonly created_at: number;
  readonly started_at: number | null;
  readonly ended_at: number | null;
}

/** Fields that the tasks of older versions do not have. */
const SINCE = { newSession: null } as const;

export function taskOf(row: TaskRow): Task {
  const spec = { ...SINCE, ...(JSON.parse(row.spec) as TaskSpec & Pick<Task, 'agent' | 'sessions'>) };
  return {
    id: row.id,
    owner: row.owner,
    plan: row.plan,
    place: row.place,
    ...spec,
    state: row.state,
    progress: JSON.parse(row.progress),
    cancelRequested: row.cancel_by !== null,
    createdAt: row.created_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
  };
}

// ── plans ──

export function planHash({ tasks, parallel }: NewPlan): Uint8Array {
  const bodies = tasks.map((task) => withoutIds(task, tasks));
  // Without a limit, the same hash as before limits were stored.
  return canonicalHash(parallel === null ? bodies : { parallel, tasks: bodies });
}

/** Ids are new each time a plan is given. So a plan is compared without them, and tasks are known by their index. */
function withoutIds({ id: _, newSession, ...task }: NewTask, tasks: readonly NewTask[]) {
  // Without it, the same hash as before it existed.
  const chosen = newSession === null ? {} : { newSession };
  return { ...task, ...chosen, after: task.after.map((first) => tasks.findIndex(({ id }) => id === first)) };
}

/** The tasks of a plan that was added before. Throws `conflict` when it was another one. */
export function repeatedTasks(known: readonly TaskRow[], hash: Uint8Array): Task[] {
  if (known.every((row) => Buffer.compare(row.plan_hash, hash) === 0)) return known.map(taskOf);
  throw new ThroughlineError('conflict', 'This request id was already used for another plan.', {
    hint: 'Repeat the same plan, or use another id.',
  });
}

export function taskSessionTaken(session: string | null, cause: unknown): ThroughlineError {
  return new ThroughlineError('conflict', `The session "${session}" is named by another open task.`, {
    hint: 'A session belongs to one conversation: wait for the other task, or leave the session out.',
    cause,
  });
}

// ── the lease ──

/** The next task of an owner, how many tasks of that owner run, and the event with which one was last taken up. */
export interface Candidate<R> {
  readonly row: R;
  readonly running: number;
  readonly served: number;
}

/** The oldest task of the owner with the fewest running tasks; among equals, of the one served longest ago. */
export function fairestTask<R extends Pick<TaskRow, 'no'>>(candidates: Iterable<Candidate<R>>): R | null {
  let best: { row: R; rank: readonly number[] } | null = null;
  for (const { row, running, served } of candidates) {
    const rank = [running, served, row.no];
    if (best === null || isBefore(rank, best.rank)) best = { row, rank };
  }
  return best?.row ?? null;
}

function isBefore(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((value, i) => value !== b[i]);
  return at !== -1 && (a[at] as number) < (b[at] as number);
}

/** The row under the fence. Throws `lease_lost`: only the epoch decides, not the time. */
export function taskUnder(row: TaskRow, fence: TaskFence): TaskRow {
  if (row.epoch === fence.epoch && row.state === 'running') return row;
  throw new ThroughlineError('lease_lost', 'Another runner has the task now.');
}

/** It was given back, perhaps during a turn: the next runner ends that turn and counts its cost. */
export function isBegun({ state, progress }: TaskRow): boolean {
  return state === 'queued' && (JSON.parse(progress) as TaskProgress).conversation !== null;
}

/** A task that is queued again, as JSON. Throws `conflict` when it cannot be. */
export function retriedTask(row: TaskRow, { by: _, say, ...changed }: TaskRetry): { spec: string; progress: string } {
  if (row.state !== 'asking' && row.state !== 'failed' && row.state !== 'cancelled') {
    throw new ThroughlineError('conflict', `The task is ${row.state}.`, {
      hint: 'Only a task that asks, has failed or was cancelled can be retried.',
    });
  }
  const before = JSON.parse(row.spec) as TaskSpec;
  if (before.goal === ERASED) {
    throw new ThroughlineError('conflict', 'The goal of the task was erased with its conversation.', {
      hint: 'Add a new task.',
    });
  }
  const progress = retriedProgress(JSON.parse(row.progress) as TaskProgress, say);
  return { spec: JSON.stringify({ ...before, ...changed }), progress: JSON.stringify(progress) };
}

// ── erasing ──

/** Goals and gate outputs are prompts, so they are erased with the conversation. Throws `conflict` for an open task. */
export function taskWithoutWords(row: TaskRow): { spec: string; progress: string } {
  if (!taskHasEnded(row.state)) {
    throw new ThroughlineError('conflict', `The task ${row.id}, which works in this conversation, is ${row.state}.`, {
      hint: 'Cancel the task, and erase the conversation when it has ended.',
    });
  }
  const spec = { ...JSON.parse(row.spec), ...WITHOUT_WORDS };
  const progress = withoutWords(JSON.parse(row.progress));
  return { spec: JSON.stringify(spec), progress: JSON.stringify(progress) };
}

const WITHOUT_WORDS: Partial<Task> = {
  goal: ERASED,
  name: null,
  gate: null,
  milestone: null,
  session: null,
  newSession: null,
  cwd: null,
  sandbox: null,
};

function withoutWords(progress: TaskProgress): TaskProgress {
  const { decision } = progress;
  return { ...progress, feedback: null, decision: decision && { ...decision, reason: ERASED } };
}

type Scrub = { readonly [K in TaskEventKind]: ((payload: TaskEventPayloads[K]) => TaskEventPayloads[K]) | null };

/** Removes the texts from an event; null: it has none. */
const SCRUB: Scrub = {
  'task.added': (payload) => ({ ...payload, name: null, goal: ERASED, milestone: null }),
  'task.turned': (payload) => {
    const { failure, denied = [] } = payload;
    return {
      ...payload,
      failure: failure && { code: failure.code, message: ERASED },
      denied: denied.map((one) => ({ ...one, title: ERASED })),
    };
  },
  'task.gated': (payload) => ({ ...payload, result: { ...payload.result, summary: ERASED, output: '' } }),
  'task.decided': (payload) => ({ ...payload, reason: ERASED }),
  'task.retried': (payload) => ({ ...payload, say: payload.say === null ? null : ERASED }),
  'task.queued': null,
  'task.started': null,
  'task.opened': null,
  'task.cancel_requested': null,
  'task.cancelled': null,
};

/** The payload of an event without its texts, as JSON; null: it has none. Of a kind that only a newer version knows, nothing is kept. */
export function payloadWithoutWords(kind: string, payload: string): string | null {
  if (!Object.hasOwn(SCRUB, kind)) return '{}';
  const scrub = SCRUB[kind as TaskEventKind] as ((payload: unknown) => unknown) | null;
  return scrub && JSON.stringify(scrub(JSON.parse(payload)));
}
