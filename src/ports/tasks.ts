import type { UsagePage } from '../core/input/usage-page.ts';
import type { BudgetInput } from '../core/limits/budget.ts';
import type { PublicTask, PublicTaskEvent, PublicTaskUsageRow } from '../core/public/task.ts';
import type { TaskState } from '../core/tasks/task.ts';
import type { Locate, TaskPlan } from '../core/tasks/task-plan.ts';
import type { TaskReport } from '../core/tasks/task-report.ts';
import type { PermissionMode } from '../core/turn/turn.ts';
import type { FollowOptions } from './engine.ts';

/**
 * Agents at work, on behalf of one owner. Embedded or over HTTP: the same interface, the same answers. Wherever a task is
 * named, its id and its name both work; of several with that name, the newest. Unknown or another owner's: `not_found`.
 *
 * @example
 * const tasks = await tl.tasks.run([
 *   { name: 'parser', goal: 'Write a parser.', gate: 'npm test' },
 *   { name: 'guide', goal: 'Describe it.', after: 'parser' },
 * ]);
 */
export interface Tasks {
  readonly owner: string;
  /** The same on behalf of another owner. `by`: who acts, as the record has it; else the owner. It is for owners that were checked before. */
  as(owner: string, by?: string): Tasks;

  /**
   * Accepts one task, several, or a plan `{tasks, defaults, parallel}`, all or none, and returns when they are stored. They
   * are worked on from now on. What can never run is `invalid` or `refused` here, and nothing is stored.
   */
  add(plan: TaskPlan, options?: AddOptions): Promise<{ tasks: PublicTask[]; duplicate: boolean }>;
  /** Adds, and waits as `waitFor` does. */
  run(plan: TaskPlan, options?: AddOptions & { signal?: AbortSignal }): Promise<PublicTask[]>;
  /**
   * Waits until each has ended, asks a person, belongs to another data home where no process runs it (`stranded`), or waits for
   * such a one; returns them as they are then.
   */
  waitFor(tasks: readonly string[], options?: { signal?: AbortSignal }): Promise<PublicTask[]>;
  /** This process works on all unfinished tasks of the owner: the process that did so before may be gone. */
  resume(): Promise<PublicTask[]>;

  task(idOrName: string): Promise<PublicTask>;
  /** Newest first, a page of 50 or of `limit`. Only an empty page is the last. */
  list(filter?: TaskListFilter): Promise<PublicTask[]>;
  /** Asks its agent and its gate to stop. Returns the task as it is after asking; a running one ends a little later. */
  cancel(idOrName: string): Promise<PublicTask>;
  /** Continues a task that asks, has failed or was cancelled. Any other is a `conflict`. */
  retry(idOrName: string, options?: RetryOptions): Promise<PublicTask>;
  /** Everything about one task. */
  report(idOrName: string): Promise<TaskReport>;
  /** What tasks have spent, by day (UTC) and task, newest first, a page of 100 or of `limit`. */
  usage(page?: UsagePage<Pick<PublicTaskUsageRow, 'day' | 'taskId'>>): Promise<PublicTaskUsageRow[]>;
  /** The number of the last event of all tasks: whoever follows after it sees only what is new. */
  lastSeq(): Promise<number>;
  /** The log that `lastSeq` counts in. */
  logId(): Promise<string>;
  /**
   * Events of all tasks, or of one, after `after`, in order; waits for more until the signal aborts. Throws `log_changed` as
   * `Engine.follow` does.
   */
  follow(options?: FollowOptions & { readonly task?: string }): AsyncIterable<PublicTaskEvent>;

  /** Stops working. Running tasks are given back and can be continued; their turns end when the engine is closed. */
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
  readonly requestId?: string;
  /** The directory that a task's `cwd` is relative to; left out: that of this process. */
  readonly base?: string;
  /** Tells a person where in the plan a fault is. */
  readonly locate?: Locate;
}

export interface TaskListFilter {
  readonly states?: readonly TaskState[];
  readonly milestone?: string;
  readonly limit?: number;
  /** The id of the last one of the previous page. */
  readonly before?: string;
}

/**
 * How a task goes on that asks, has failed or was cancelled.
 *
 * @example
 * await tl.tasks.retry('parser', { say: 'Use the other library.', maxIterations: 5 });
 */
export interface RetryOptions {
  /** What the agent is told by the person. */
  readonly say?: string;
  /** As in a plan: what was spent so far counts. */
  readonly budget?: BudgetInput;
  readonly maxIterations?: number;
  /** From now on: `ask` waits for an answer, `deny` denies at once. */
  readonly permissions?: PermissionMode;
}
