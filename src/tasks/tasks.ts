import { randomUUIDv7 } from 'node:crypto';
import { noSuchPlan, noSuchTask } from '../core/errors.ts';
import { checkEventNumber } from '../core/event.ts';
import { checkAfter, checkLimit, checkText, checkWait, given } from '../core/input/arguments.ts';
import { type Actor, actor } from '../core/input/names.ts';
import { checkUsagePage } from '../core/input/usage-page.ts';
import {
  type PublicPlan,
  type PublicTask,
  type PublicTaskEvent,
  toPublicPlan,
  toPublicTask,
  toPublicTaskEvent,
} from '../core/public/task.ts';
import { checkTaskStates, type Task, type TaskEvent, taskHasEnded } from '../core/tasks/task.ts';
import { inWords, parsePlan, placesIn, type TaskPlan } from '../core/tasks/task-plan.ts';
import { reportOf, type TaskReport } from '../core/tasks/task-report.ts';
import { parseRetry } from '../core/tasks/task-retry.ts';
import { whyTaskStranded } from '../core/tasks/task-standing.ts';
import { runsAt } from '../core/turn/standing.ts';
import { inPages } from '../flow/pages.ts';
import { waitForTasks } from '../flow/task-wait.ts';
import type { AddOptions, PlanOptions, RetryOptions, TaskListFilter, Tasks } from '../ports/tasks.ts';
import { admitTasks } from './admit.ts';
import type { TaskParts } from './parts.ts';
import { TaskRunner } from './runner.ts';

const PAGE = 200;
/** A page stays in memory until its reader has taken it, and there may be many readers. */
const FOLLOWED_BYTES = 256 * 1024;

/** Creates the Tasks port and starts its runner. */
export function createTasks(parts: TaskParts): Tasks {
  return new EmbeddedTasks(parts, new TaskRunner(parts), actor(parts.engine.owner));
}

class EmbeddedTasks implements Tasks {
  readonly owner: string;
  readonly #by: string;
  readonly #parts: TaskParts;
  readonly #runner: TaskRunner;

  constructor(parts: TaskParts, runner: TaskRunner, { owner, by }: Actor) {
    this.#parts = parts;
    this.#runner = runner;
    this.owner = owner;
    this.#by = by;
  }

  as(owner: string, by?: string): Tasks {
    return new EmbeddedTasks(this.#parts, this.#runner, actor(owner, by));
  }

  get #store() {
    return this.#parts.store.tasks;
  }

  async add(plan: TaskPlan, options: AddOptions = {}) {
    const { requestId, base, locate = inWords } = options;
    if (requestId !== undefined) checkText(requestId, 'request id');
    const { tasks: specs, parallel } = parsePlan(plan, locate);
    const tasks = await admitTasks(this.#parts, specs, { base, at: placesIn(plan, locate) });
    const added = await this.#store.add(this.owner, {
      plan: requestId ?? randomUUIDv7(),
      place: this.#parts.sandboxes.place,
      parallel,
      tasks,
    });
    this.#want(added.tasks);
    return { tasks: await this.#shown(added.tasks), duplicate: added.duplicate };
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

  async resume(): Promise<PublicTask[]> {
    const filter = { states: ['waiting', 'queued', 'running'] } as const;
    const read = (last: Task | undefined) =>
      this.#store.list(this.owner, filter, { limit: PAGE, ...given({ before: last?.id }) });
    const open = (await Array.fromAsync(inPages(read))).toReversed();
    this.#want(open);
    return this.#shown(open);
  }

  async task(idOrName: string): Promise<PublicTask> {
    const find = async () => {
      const task = await this.#store.find(this.owner, idOrName);
      if (task === null) throw noSuchTask(idOrName);
      return [task];
    };
    const [task] = await this.#refreshed(find);
    return task as PublicTask;
  }

  async list({ states, milestone, limit, before }: TaskListFilter = {}): Promise<PublicTask[]> {
    if (states !== undefined) checkTaskStates(states);
    const page = { limit: checkLimit(limit, 50), ...(before && { before }) };
    return this.#refreshed(() => this.#store.list(this.owner, given({ states, milestone }), page));
  }

  async cancel(idOrName: string): Promise<PublicTask> {
    const { id } = await this.task(idOrName);
    const task = await this.#store.requestCancel(this.owner, id, this.#by);
    // If its runner is dead, this process ends the task and its turns.
    if (!taskHasEnded(task.state)) this.#runner.want(id);
    const [shown] = await this.#shown([task]);
    return shown as PublicTask;
  }

  async retry(idOrName: string, options: RetryOptions = {}): Promise<PublicTask> {
    const checked = parseRetry(options);
    const { id } = await this.task(idOrName);
    const task = await this.#store.retry(this.owner, id, { by: this.#by, ...checked });
    this.#want([task]);
    const [shown] = await this.#shown([task]);
    return shown as PublicTask;
  }

  async report(idOrName: string): Promise<TaskReport> {
    const task = await this.task(idOrName);
    const read = (last: TaskEvent | undefined) =>
      this.#store.events(this.owner, { after: last?.seq ?? 0, limit: PAGE, task: task.id });
    const events = await Array.fromAsync(inPages(read));
    const conversations = new Set(
      events.flatMap((event) => (event.kind === 'task.turned' ? [event.payload.conversation] : [])),
    );
    const sessions = [];
    for (const id of conversations) sessions.push(...(await this.#parts.store.sessions(this.owner, id)));
    return reportOf(task, events.map(toPublicTaskEvent), sessions);
  }

  async plan(id: string, { waitMs, signal }: PlanOptions = {}): Promise<PublicPlan> {
    const ms = checkWait(waitMs);
    const after = await this.lastSeq();
    const tasks = await this.#tasksOf(id);
    const now = toPublicPlan(id, tasks);
    if (ms === 0 || now.state !== 'running') return now;
    const over = AbortSignal.any([AbortSignal.timeout(ms), ...(signal ? [signal] : [])]);
    const ids = tasks.map((task) => task.id);
    await waitForTasks(this, ids, over, { after, tasks });
    return toPublicPlan(id, await this.#tasksOf(id));
  }

  async #tasksOf(plan: string): Promise<PublicTask[]> {
    const tasks = await this.#refreshed(() => this.#store.plan(this.owner, plan));
    if (tasks.length === 0) throw noSuchPlan(plan);
    return tasks;
  }

  async usage(page: Parameters<Tasks['usage']>[0] = {}) {
    const { before, ...rest } = checkUsagePage(page);
    const last = before && { before: { day: before.day, task: before.taskId } };
    const rows = await this.#store.usage(this.owner, { ...rest, ...last });
    return rows.map(({ task, ...row }) => ({ taskId: task, ...row }));
  }

  lastSeq() {
    return this.#store.lastSeq(this.owner);
  }

  logId() {
    return this.#parts.store.log();
  }

  async *follow(options: Parameters<Tasks['follow']>[0] = {}): AsyncGenerator<PublicTaskEvent> {
    const { signal, task, log } = options;
    const from = checkAfter(options.after);
    checkEventNumber({ after: from, log }, { lastSeq: await this.lastSeq(), logId: await this.logId() });
    const only = task === undefined ? {} : { task: (await this.task(task)).id };
    let moved = Promise.withResolvers<void>();
    const wake = () => moved.resolve();
    // What the holder of a conversation writes there does not change a task.
    const stopListening = this.#parts.store.listen((ids, own) => {
      if (ids === null || ids.some((id) => !own?.has(id))) wake();
    });
    signal?.addEventListener('abort', wake);
    try {
      for (let after = from; !signal?.aborted; ) {
        moved = Promise.withResolvers();
        const page = await this.#store.events(this.owner, { after, limit: PAGE, bytes: FOLLOWED_BYTES, ...only });
        for (const event of page) {
          if (signal?.aborted) return;
          yield toPublicTaskEvent(event);
          after = event.seq;
        }
        if (page.length > 0 || signal?.aborted) continue;
        // A command that works on a task itself has reported a missing data file, and continues when the file is back.
        if (this.#parts.settings.claims !== 'own' || !this.#runner.isWorking) await this.#parts.store.check();
        // A notification may be lost, so it also reads by the clock.
        const timer = setTimeout(wake, this.#parts.settings.pollMs);
        await moved.promise;
        clearTimeout(timer);
      }
    } finally {
      stopListening();
      signal?.removeEventListener('abort', wake);
    }
  }

  close(): Promise<void> {
    return this.#runner.close();
  }

  /** Reads tasks. If a dead runner holds tasks, queues these, and reads again. */
  async #refreshed(read: () => Promise<Task[]>): Promise<PublicTask[]> {
    const tasks = await read();
    const mayBeLeft = tasks.some(({ state }) => state === 'running');
    return this.#shown(mayBeLeft && (await this.#runner.freeDead()) ? await read() : tasks);
  }

  /** The public values. A queued task also gets the reason why no process works on it. */
  async #shown(tasks: readonly Task[]): Promise<PublicTask[]> {
    const { store, processes, sandboxes } = this.#parts;
    const isHere = ({ place }: Task) => runsAt(place, sandboxes.place);
    const mayBeStranded = (task: Task) => task.state === 'queued' && !(isHere(task) && this.#runner.takes(task.id));
    if (!tasks.some(mayBeStranded)) return tasks.map((task) => toPublicTask(task));
    const [takers, holders] = await Promise.all([store.takers(), this.#store.holders()]);
    const homes = new Map<string, string | null>();
    for (const place of new Set(tasks.filter(mayBeStranded).map((task) => task.place)))
      homes.set(place, await store.placeName(place));
    const common = { takers, holders, status: processes.status, store: store.address };
    return tasks.map((task) => {
      if (!mayBeStranded(task)) return toPublicTask(task);
      const facts = { ...common, here: isHere(task), home: homes.get(task.place) ?? null };
      return toPublicTask(task, whyTaskStranded(task, facts));
    });
  }

  #want(tasks: readonly Task[]): void {
    this.#runner.want(...tasks.filter(({ state }) => !taskHasEnded(state)).map(({ id }) => id));
  }
}
