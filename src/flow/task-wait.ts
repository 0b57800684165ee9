import type { PublicTask, PublicTaskEvent } from '../core/public/task.ts';
import { tasksAtRest } from '../core/tasks/plan-state.ts';

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
 * this way; or until the signal aborts. `read`: tasks as they were read after this event; left out: reads them.
 */
export async function waitForTasks(
  tasks: Followed,
  ids: readonly string[],
  signal: AbortSignal | undefined,
  read?: { readonly after: number; readonly tasks: readonly PublicTask[] },
): Promise<PublicTask[]> {
  const after = read?.after ?? (await tasks.lastSeq());
  const wait = new TaskWait((id) => tasks.task(id), read?.tasks);
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
  readonly #known: Map<string, PublicTask>;
  readonly #asked: string[] = [];

  constructor(find: (idOrName: string) => Promise<PublicTask>, known: readonly PublicTask[] = []) {
    this.#find = find;
    this.#known = new Map(known.map((task) => [task.id, task]));
  }

  async begin(asked: readonly string[]): Promise<void> {
    for (const one of asked) this.#asked.push(this.#known.has(one) ? one : await this.#look(one));
  }

  /** Reads a task again that has changed. Ignores others. */
  async moved(id: string): Promise<void> {
    if (this.#known.has(id)) await this.#look(id);
  }

  get tasks(): PublicTask[] {
    return this.#asked.map((id) => this.#known.get(id) as PublicTask);
  }

  get isOver(): boolean {
    // A process of this data home may begin a task at any moment.
    const resting = tasksAtRest(this.#known.values(), ({ stranded }) => stranded?.reason === 'other_home');
    return this.#asked.every((id) => resting.has(id));
  }

  async #look(idOrName: string): Promise<string> {
    const task = await this.#find(idOrName);
    this.#known.set(task.id, task);
    for (const first of task.after) if (!this.#known.has(first)) await this.#look(first);
    return task.id;
  }
}
