import type { UsagePage } from '../core/input/usage-page.ts';
import type { BudgetInput } from '../core/limits/budget.ts';
import type { PublicPlan, PublicTask, PublicTaskEvent, PublicTaskUsageRow } from '../core/public/task.ts';
import type { TaskState } from '../core/tasks/task.ts';
import type { Locate, TaskPlan } from '../core/tasks/task-plan.ts';
import type { TaskReport } from '../core/tasks/task-report.ts';
import type { PermissionMode } from '../core/turn/turn.ts';
import type { FollowOptions } from './engine.ts';

/**
 * The tasks of one owner. Embedded or over HTTP: the same interface, the same answers. A task is named by its id or its name; if several have
 * that name, the newest is meant. An unknown task, or one of another owner, is `not_found`.
 *
 * @example
 * const tasks = await tl.tasks.run([
 *   { name: 'parser', goal: 'Write a parser.', gate: 'npm test' },
 *   { name: 'guide', goal: 'Describe it.', after: 'parser' },
 * ]);
 */
export interface Tasks {
  readonly owner: string;
  /** The same on behalf of another owner. `by`: who acts, as recorded; left out: the owner. An owner given with `by` was checked before. */
  as(owner: string, by?: string): Tasks;

  /**
   * Accepts one task, several, or a plan `{tasks, defaults, parallel}`, all or none, and returns when they are stored. Work on them begins
   * at once. Throws `invalid` or `refused` for what can never run; then nothing is stored.
   */
  add(plan: TaskPlan, options?: AddOptions): Promise<{ tasks: PublicTask[]; duplicate: boolean }>;
  /** Adds, and waits as `waitFor` does. */
  run(plan: TaskPlan, options?: AddOptions & { signal?: AbortSignal | undefined }): Promise<PublicTask[]>;
  /**
   * Waits until each task has ended, asks a person, is `stranded` (it belongs to another data home, where no process runs it), or waits for
   * such a task. Returns them as they are then.
   */
  waitFor(tasks: readonly string[], options?: { signal?: AbortSignal | undefined }): Promise<PublicTask[]>;
  /** This process works on all unfinished tasks of the owner, because the process that did so before may be gone. */
  resume(): Promise<PublicTask[]>;

  task(idOrName: string): Promise<PublicTask>;
  /** Newest first, a page of 50 or of `limit`. Only an empty page is the last. */
  list(filter?: TaskListFilter): Promise<PublicTask[]>;
  /** Asks its agent and its gate to stop, and returns the task as it is then. A running task ends a little later. */
  cancel(idOrName: string): Promise<PublicTask>;
  /** Continues a task that asks, has failed or was cancelled. Any other is a `conflict`. */
  retry(idOrName: string, options?: RetryOptions): Promise<PublicTask>;
  /** Everything about one task. */
  report(idOrName: string): Promise<TaskReport>;
  /**
   * The tasks that were added together under this `planId`, and whether a person is needed. With `waitMs` it waits while the plan is running;
   * it may still be running when that time is over. An unknown plan, or one of another owner, is `not_found`.
   */
  plan(id: string, options?: PlanOptions): Promise<PublicPlan>;
  /** What tasks have spent, by day (UTC) and task, newest first, a page of 100 or of `limit`. */
  usage(page?: UsagePage<Pick<PublicTaskUsageRow, 'day' | 'taskId'>>): Promise<PublicTaskUsageRow[]>;
  /** The number of the last event of all tasks. To see only new events, follow after it. */
  lastSeq(): Promise<number>;
  /** The log that `lastSeq` counts in. */
  logId(): Promise<string>;
  /**
   * Events of all tasks, or of one, after `after`, in order; waits for more until the signal aborts. Throws `log_changed` as
   * `Engine.follow` does.
   */
  follow(options?: FollowOptions & { readonly task?: string | undefined }): AsyncIterable<PublicTaskEvent>;

  /** Stops working on tasks. Running ones are given back and can be continued; their turns end when the engine is closed. */
  close(): Promise<void>;
}

/**
 * How a plan is added.
 *
 * @example
 * const { tasks, duplicate } = await tl.tasks.add({ goal: 'Write a parser.' }, { requestId: 'parser-1' });
 */
export interface AddOptions {
  /** The same id and plan again are the same tasks: safe to repeat. */
  readonly requestId?: string | undefined;
  /**
   * The directory of this machine that a task's `cwd` is relative to; left out: the working directory of this process. With sandboxes on
   * another machine, a relative `cwd` is refused. A client makes it a path of its own machine, because it does not know the sandboxes of
   * its server.
   */
  readonly base?: string | undefined;
  /** Describes for people where in the plan a fault is. */
  readonly locate?: Locate | undefined;
}

/**
 * How long to wait while a plan is running.
 *
 * @example
 * const { state, needs } = await tl.tasks.plan('nightly', { waitMs: 30_000 });
 */
export interface PlanOptions {
  /** Up to 60,000. Left out: does not wait. */
  readonly waitMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface TaskListFilter {
  readonly states?: readonly TaskState[] | undefined;
  readonly milestone?: string | undefined;
  readonly limit?: number | undefined;
  /** The id of the last one of the previous page. */
  readonly before?: string | undefined;
}

/**
 * How a task continues that asks, has failed or was cancelled.
 *
 * @example
 * await tl.tasks.retry('parser', { say: 'Use the other library.', maxIterations: 5 });
 */
export interface RetryOptions {
  /** What the person tells the agent. */
  readonly say?: string | undefined;
  /** As in a plan: what was spent so far counts. */
  readonly budget?: BudgetInput | undefined;
  readonly maxIterations?: number | undefined;
  /** From now on: `ask` waits for an answer, `deny` denies at once. */
  readonly permissions?: PermissionMode | undefined;
}
