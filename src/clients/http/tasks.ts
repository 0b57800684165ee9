import { noSuchPlan, noSuchTask, ThroughlineError } from '../../core/errors.ts';
import { checkAfter, checkLimit, checkWait } from '../../core/input/arguments.ts';
import { checkUsagePage } from '../../core/input/usage-page.ts';
import type { PublicPlan, PublicTask, PublicTaskEvent } from '../../core/public/task.ts';
import { checkTaskStates, type TaskSpec } from '../../core/tasks/task.ts';
import { inWords, type Locate, parsePlan, placesIn, type TaskPlan } from '../../core/tasks/task-plan.ts';
import type { TaskReport } from '../../core/tasks/task-report.ts';
import { parseRetry } from '../../core/tasks/task-retry.ts';
import { inPages } from '../../flow/pages.ts';
import { waitForTasks } from '../../flow/task-wait.ts';
import type { AddOptions, PlanOptions, RetryOptions, TaskListFilter, Tasks } from '../../ports/tasks.ts';
import { checkSegment, withAbsoluteDirectories } from './addresses.ts';
import type { Caller } from './caller.ts';

const PAGE = 200;

/** In paths, these are other operations, so tasks with these names are found by their ids. */
const NOT_IN_PATHS = ['events', 'usage'];

/** The tasks of a server, over HTTP: the same interface and the same answers as embedded. The server works on them. */
export class HttpTasks implements Tasks {
  readonly owner: string;
  readonly #caller: Caller;
  readonly #here: (() => string) | null;

  /** `here`: what directories of a plan are relative to; null: they must be absolute. */
  constructor(caller: Caller, here: (() => string) | null) {
    this.owner = caller.owner;
    this.#caller = caller;
    this.#here = here;
  }

  as(owner: string, by?: string): Tasks {
    return new HttpTasks(this.#caller.as(owner, by), this.#here);
  }

  async add(plan: TaskPlan, options: AddOptions = {}) {
    const { requestId, base, locate = inWords } = options;
    const { tasks } = parsePlan(plan, locate);
    const bases = [...(base === undefined ? [] : [base]), ...(this.#here === null ? [] : [this.#here()])];
    const body = { plan: withAbsoluteDirectories(plan, bases) };
    try {
      return await this.#caller.accepted(requestId, (id) =>
        this.#caller.ask('addTasks', { body: { ...body, requestId: id }, within: 'longMs' }),
      );
    } catch (error) {
      throw located(error, { plan, locate, count: tasks.length });
    }
  }

  async run(plan: TaskPlan, options: AddOptions & { signal?: AbortSignal } = {}): Promise<PublicTask[]> {
    const { tasks } = await this.add(plan, options);
    return this.waitFor(
      tasks.map(({ id }) => id),
      options,
    );
  }

  waitFor(ids: readonly string[], { signal }: { signal?: AbortSignal } = {}): Promise<PublicTask[]> {
    return waitForTasks(this, ids, signal);
  }

  /** The server works on all of them anyway. */
  async resume(): Promise<PublicTask[]> {
    return (await Array.fromAsync(this.#all({ states: ['waiting', 'queued', 'running'] }))).toReversed();
  }

  async task(idOrName: string): Promise<PublicTask> {
    return this.#caller.ask('getTask', { params: await this.#at(idOrName) });
  }

  async list({ states, limit, ...filter }: TaskListFilter = {}): Promise<PublicTask[]> {
    if (states !== undefined) checkTaskStates(states);
    const query = { ...filter, limit: checkLimit(limit, 50), state: states?.join(',') };
    return states?.length === 0 ? [] : (await this.#caller.ask('listTasks', { query })).tasks;
  }

  async cancel(idOrName: string): Promise<PublicTask> {
    return this.#caller.ask('cancelTask', { params: await this.#at(idOrName) });
  }

  async retry(idOrName: string, options: RetryOptions = {}): Promise<PublicTask> {
    parseRetry(options);
    const { say, budget, maxIterations, permissions } = options;
    const asked = { params: await this.#at(idOrName), body: { say, budget, maxIterations, permissions } };
    // If it were sent twice, it could retry the task twice, when the task has failed again meanwhile.
    return this.#caller.ask('retryTask', { ...asked, repeatable: false });
  }

  async report(idOrName: string): Promise<TaskReport> {
    return this.#caller.ask('reportTask', { params: await this.#at(idOrName), within: 'longMs' });
  }

  async plan(id: string, { waitMs, signal }: PlanOptions = {}): Promise<PublicPlan> {
    const [params, query] = [{ plan: checkSegment(id, noSuchPlan) }, { wait: Math.ceil(checkWait(waitMs) / 1_000) }];
    return this.#caller.ask('getPlan', { params, query, within: 'longMs', signal });
  }

  async usage(page: Parameters<Tasks['usage']>[0] = {}) {
    const { before, ...query } = checkUsagePage(page);
    const last = before && `${before.day}_${before.taskId}`;
    return (await this.#caller.ask('taskUsage', { query: { ...query, before: last } })).usage;
  }

  async lastSeq(): Promise<number> {
    return (await this.#caller.ask('listTasks', { query: { limit: 1 } })).seq;
  }

  async logId(): Promise<string> {
    return (await this.#caller.ask('listTasks', { query: { limit: 1 } })).logId;
  }

  async *follow(options: Parameters<Tasks['follow']>[0] = {}) {
    // By its id: after a reconnect, the name may belong to a newer task.
    const task = options.task === undefined ? undefined : (await this.task(options.task)).id;
    const query = { after: checkAfter(options.after), log: options.log, task };
    yield* this.#caller.events<PublicTaskEvent>('followTasks', { query }, options.signal);
  }

  /** Nothing to close: the server continues, and the connection belongs to the engine. */
  async close(): Promise<void> {}

  async #at(idOrName: string): Promise<{ task: string }> {
    if (!NOT_IN_PATHS.includes(idOrName)) return { task: checkSegment(idOrName, noSuchTask) };
    for await (const { id, name } of this.#all({})) if (name === idOrName) return { task: id };
    throw noSuchTask(idOrName);
  }

  /** Newest first. */
  #all(filter: TaskListFilter): AsyncGenerator<PublicTask> {
    return inPages((last) => this.list({ ...filter, limit: PAGE, ...(last && { before: last.id }) }));
  }
}

/** Fields that only the server can check. */
const REFUSED: readonly (keyof TaskSpec)[] = ['agent', 'gate', 'sessions', 'session', 'newSession', 'cwd'];

/** The server does not have the file of a plan. It names the place in words, which is replaced by the line here. */
function located(error: unknown, { plan, locate, count }: { plan: unknown; locate: Locate; count: number }): unknown {
  if (!(error instanceof ThroughlineError)) return error;
  const [inTheirs, inOurs] = [placesIn(plan, inWords), placesIn(plan, locate)];
  for (let i = 0; i < count; i += 1) {
    for (const field of REFUSED) {
      const place = inTheirs(i, field);
      if (!error.message.startsWith(place)) continue;
      const { code, message, hint } = error;
      const ours = `${inOurs(i, field)}${message.slice(place.length)}`;
      return new ThroughlineError(code, ours, { hint, cause: error });
    }
  }
  return error;
}
