import type { TaskState } from '../../../src/core/tasks/task.ts';

export const OWNERS = ['ann', 'bob'] as const;
export const WORKERS = ['one', 'two'] as const;
export const LEASE_MS = 1_000;

/** A task in the model. */
export interface ModelTask {
  readonly id: string;
  readonly owner: string;
  readonly plan: string;
  readonly parallel: number | null;
  readonly milestone: string | null;
  readonly after: readonly ModelTask[];
  state: TaskState;
  epoch: number;
  worker: string | null;
  expires: number;
  /** A runner has opened its conversation. */
  begun: boolean;
  cancel: boolean;
  /** How many events it has. */
  events: number;
}

/** The rules of a queue of tasks, as simple code. */
export class Model {
  /** In the order in which they were added. */
  readonly tasks: ModelTask[] = [];
  readonly #served = new Map<string, number>();
  #claims = 0;

  /** The task that must be claimed next. Null: none. */
  claim(worker: string, limit: number, only: string | null, now: number): ModelTask | null {
    for (const task of this.tasks) if (task.state === 'running' && task.expires <= now) this.giveBack(task);
    const found = this.#next(limit, only);
    if (found === null) return null;
    this.#claims += 1;
    this.#served.set(found.owner, this.#claims);
    Object.assign(found, { state: 'running', worker, epoch: found.epoch + 1, expires: now + LEASE_MS });
    found.events += 1;
    return found;
  }

  #next(limit: number, only: string | null): ModelTask | null {
    const queued = this.tasks.filter(({ state, id }) => state === 'queued' && (only === null || only === id));
    const toCancel = queued.find(({ cancel }) => cancel);
    if (toCancel !== undefined) return toCancel;
    const inWork = this.tasks.filter(({ state }) => state === 'queued' || state === 'running');
    const most = Math.max(limit, ...inWork.map(({ parallel }) => parallel ?? 0));
    if (this.#running().length >= most) return null;
    const firsts = OWNERS.flatMap((owner) => queued.find((task) => task.owner === owner && this.#mayRun(task)) ?? []);
    const rank = ({ owner }: ModelTask) => [this.#running({ owner }).length, this.#served.get(owner) ?? 0] as const;
    const [fairest] = firsts.toSorted((a, b) => {
      const [[x, y], [z, w]] = [rank(a), rank(b)];
      return x - z || y - w || this.tasks.indexOf(a) - this.tasks.indexOf(b);
    });
    return fairest ?? null;
  }

  #mayRun({ owner, plan, parallel, milestone }: ModelTask): boolean {
    if (milestone !== null && this.#running({ owner, milestone }).length > 0) return false;
    return parallel === null || this.#running({ owner, plan }).length < parallel;
  }

  #running(of: Partial<ModelTask> = {}): ModelTask[] {
    const wanted = Object.entries(of) as [keyof ModelTask, unknown][];
    return this.tasks.filter(
      (task) => task.state === 'running' && wanted.every(([name, value]) => task[name] === value),
    );
  }

  giveBack(task: ModelTask): void {
    Object.assign(task, { state: 'queued', worker: null });
    task.events += 1;
  }

  end(task: ModelTask, state: TaskState): void {
    Object.assign(task, { state, worker: null, cancel: false });
    task.events += 1;
    if (state !== 'done') return;
    for (const next of this.tasks) {
      if (next.state !== 'waiting' || !next.after.includes(task) || !isReady(next)) continue;
      next.state = 'queued';
      next.events += 1;
    }
  }

  cancel(task: ModelTask): void {
    if (task.state === 'running' || (task.state === 'queued' && task.begun)) {
      if (!task.cancel) task.events += 1;
      task.cancel = true;
    } else if (task.state === 'queued' || task.state === 'waiting' || task.state === 'asking') {
      this.end(task, 'cancelled');
    }
  }

  /** False: the retry is refused. */
  retry(task: ModelTask): boolean {
    if (!['asking', 'failed', 'cancelled'].includes(task.state)) return false;
    task.state = isReady(task) ? 'queued' : 'waiting';
    task.events += 1;
    return true;
  }
}

export function isReady({ after }: ModelTask): boolean {
  return after.every(({ state }) => state === 'done');
}
