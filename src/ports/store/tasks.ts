import type { UsagePage } from '../../core/input/usage-page.ts';
import type { SandboxProcess } from '../../core/process.ts';
import type {
  Task,
  TaskEvent,
  TaskEventDraft,
  TaskProgress,
  TaskSpec,
  TaskState,
  TaskTurn,
} from '../../core/tasks/task.ts';
import type { CheckedRetry } from '../../core/tasks/task-retry.ts';
import type { Usage } from '../../core/turn/usage.ts';
import type { WorkerInfo } from './leases.ts';

/**
 * Where tasks are stored. A part of the store: the same owners, durability and faults. The turns of a task are ordinary turns of a
 * conversation, and stored as such.
 */
export interface TaskStore {
  /**
   * Adds all or none. The same `plan` and body again returns the same tasks; another body is a `conflict`. Also a `conflict`: a session that
   * an open task uses already.
   */
  add(owner: string, plan: NewPlan): Promise<{ tasks: Task[]; duplicate: boolean }>;
  /** By our id, or the newest that has this name. Null: none of this owner. */
  find(owner: string, idOrName: string): Promise<Task | null>;
  /** The tasks that were added together under this key, in their order; empty: none of this owner. */
  plan(owner: string, plan: string): Promise<Task[]>;
  /** Newest first, a page. `before`: the id of the last one of the previous page. */
  list(owner: string, filter: TaskFilter, page: { limit: number; before?: string }): Promise<Task[]>;
  /** Rising by `seq`, which has no gaps within an owner, a page. `task`: only of that one. `bytes`: how large it may be. */
  events(owner: string, range: { after: number; limit: number; bytes?: number; task?: string }): Promise<TaskEvent[]>;
  /** The number of the owner's last event; 0: there is none. */
  lastSeq(owner: string): Promise<number>;
  /** What tasks have spent, by day (UTC) and task; newest day first, and in a day the newest task; a page. */
  usage(owner: string, page?: UsagePage<LastTaskUsage>): Promise<TaskUsageRow[]>;

  // ── for everybody ───────────────────────────────────────────────────────────────────────────────────────────────────
  /**
   * Ends a task at once if it was never begun, asks a person, or waits. A task that runs or was given back is ended by its runner or by the
   * next one. Leaves an ended task as it is.
   */
  requestCancel(owner: string, task: string, by: string): Promise<Task>;
  /** Queues a task again that asks, has failed or was cancelled. Any other is a `conflict`. */
  retry(owner: string, task: string, change: TaskRetry): Promise<Task>;

  // ── the lease ────────────────────────────────────────────────────────────────────────────────────────────────────────
  /**
   * Claims the next queued task: of the owner with the fewest running tasks, among equals of the one served longest ago; of that owner the
   * oldest. Never a task whose milestone is being worked on, or whose plan already runs as many as it allows. None while `limit` tasks of this
   * place run in all processes together, or the largest `parallel` of the plans that run. A running task whose lease has expired is queued
   * again first. A task that has to be cancelled is claimed before all others, whatever the limits, because nothing is begun in it. Null:
   * nothing to claim.
   */
  claim(request: TaskClaimRequest): Promise<TaskClaim | null>;
  /** Prolongs leases; returns those that are lost. */
  renew(fences: readonly TaskFence[], leaseMs: number): Promise<TaskFence[]>;
  /** Gives the task back; another runner may claim it. Does nothing when the lease is lost. */
  release(fence: TaskFence): Promise<void>;
  /** The runners that hold tasks now. */
  holders(): Promise<TaskHolder[]>;
  /** Queues every task of a runner that is known to be gone. */
  forgetHolder(worker: string): Promise<void>;

  /**
   * Everything that a runner writes, in one transaction. When a task becomes `done`, tasks that waited only for it are
   * queued. Throws `lease_lost`, or `invalid` for an unknown decision; then nothing is written.
   */
  commit(fence: TaskFence, change: TaskChange): Promise<Task>;
}

export interface NewPlan {
  /** The caller's idempotency key; otherwise an id of ours. */
  readonly plan: string;
  /** Where the tasks can run. */
  readonly place: string;
  /** How many of these tasks may run at once; it also raises the limit of the place. Null: not set. */
  readonly parallel: number | null;
  readonly tasks: readonly NewTask[];
}

/** A task whose agent and sessions are decided; `after` are ids of the same plan. */
export type NewTask = Omit<TaskSpec, 'agent' | 'sessions'> & Pick<Task, 'id' | 'agent' | 'sessions'>;

export interface TaskFilter {
  readonly states?: readonly TaskState[];
  readonly milestone?: string;
}

export type TaskRetry = CheckedRetry & { readonly by: string };

export interface TaskHolder extends WorkerInfo {
  /** Its leases have expired: anybody may take its tasks. */
  readonly expired: boolean;
}

export interface TaskFence {
  readonly task: string;
  readonly owner: string;
  readonly epoch: number;
}

export interface TaskClaimRequest {
  readonly worker: WorkerInfo;
  readonly place: string;
  readonly leaseMs: number;
  readonly limit: number;
  /** Only these; left out: any. */
  readonly only?: readonly string[];
  /** What this runner holds already; never claimed, even when its lease has expired. */
  readonly held?: readonly string[];
  /** What this runner has set aside because it is damaged: not claimed, not counted, and not read. */
  readonly aside?: readonly string[];
}

export interface TaskClaim {
  readonly fence: TaskFence;
  readonly task: Task;
  /** The gate of an earlier runner, which may still run; null: there is none. */
  readonly gate: SandboxProcess | null;
}

export interface TaskChange {
  readonly progress: TaskProgress;
  /** Left out: it keeps running. Any other state gives the lease back. */
  readonly state?: Exclude<TaskState, 'running' | 'queued' | 'waiting'>;
  /** The process of the gate that runs; null: none runs any more; left out: unchanged. */
  readonly gate?: SandboxProcess | null;
  readonly turns?: readonly TaskTurn[];
  readonly events: readonly TaskEventDraft[];
}

export interface TaskUsageRow {
  readonly day: string;
  readonly task: string;
  readonly name: string | null;
  readonly milestone: string | null;
  readonly turns: number;
  readonly usage: Usage;
}

/** What identifies a row. */
export type LastTaskUsage = Pick<TaskUsageRow, 'day' | 'task'>;
