import type { PublicTask, PublicTaskEvent } from '../core/public/task.ts';
import { taskHasEnded } from '../core/tasks/task.ts';

interface Followed {
  task(idOrName: string): Promise<PublicTask>;
  lastSeq(): Promise<number>;
  follow(options: { after: number; signal?: AbortSignal }): AsyncIterable<Moved>;
}

interface Moved {
  readonly taskId: string;
  readonly kind: PublicTaskEvent['kind'];
}

/** The events of a turn and of its gate. The event of the decision is stored together with them, and follows. */
const BEFORE_DECISION: readonly Moved['kind'][] = ['task.turned', 'task.gated'];

/**
 * Waits until each task has ended, asks a person, or belongs to another data home where no process runs it; or comes after a task that blocks it in
 * this way; or until the signal aborts.
 */
export async function waitForTasks(
  tasks: Followed,
  ids: readonly string[],
  signal: AbortSignal | undefined,
): Promise<PublicTask[]> {
  const after = await tasks.lastSeq();
  const wait = new TaskWait((id) => tasks.task(id));
  await wait.begin(ids);
  if (wait.isOver) return wait.tasks;
  for await (const { taskId, kind } of tasks.follow({ after, ...(signal && { signal }) })) {
    if (BEFORE_DECISION.includes(kind)) continue;
    await wait.moved(taskId);
    if (wait.isOver) break;
  }
  return wait.tasks;
}

/** Tasks that a caller waits for, and the tasks that they come after, as last read. */
export class TaskWait {
  readonly #find: (idOrName: string) => Promise<PublicTask>;
  readonly #known = new Map<string, PublicTask>();
  readonly #asked: string[] = [];

  constructor(find: (idOrName: string) => Promise<PublicTask>) {
    this.#find = find;
  }

  async begin(asked: readonly string[]): Promise<void> {
    for (const one of asked) this.#asked.push(await this.#look(one));
  }

  /** Reads a task again that has changed. Ignores others. */
  async moved(id: string): Promise<void> {
    if (this.#known.has(id)) await this.#look(id);
  }

  get tasks(): PublicTask[] {
    return this.#asked.map((id) => this.#known.get(id) as PublicTask);
  }

  get isOver(): boolean {
    const looked = new Map<string, boolean>();
    return this.tasks.every((task) => this.#isAtRest(task, looked));
  }

  /** Whether it changes no more by itself. Remembers answers, because a plan may have very many paths. */
  #isAtRest(task: PublicTask, looked: Map<string, boolean>): boolean {
    const known = looked.get(task.id);
    if (known !== undefined) return known;
    const isAtRest = this.#hasRest(task) ?? task.after.some((id) => this.#blocks(id, looked));
    looked.set(task.id, isAtRest);
    return isAtRest;
  }

  /** Null: it depends on the tasks it comes after. */
  #hasRest({ state, stranded }: PublicTask): boolean | null {
    if (state === 'waiting') return null;
    return taskHasEnded(state) || state === 'asking' || stranded?.reason === 'other_home';
  }

  #blocks(id: string, looked: Map<string, boolean>): boolean {
    const first = this.#known.get(id);
    return first !== undefined && first.state !== 'done' && this.#isAtRest(first, looked);
  }

  async #look(idOrName: string): Promise<string> {
    const task = await this.#find(idOrName);
    this.#known.set(task.id, task);
    for (const first of task.after) if (!this.#known.has(first)) await this.#look(first);
    return task.id;
  }
}
