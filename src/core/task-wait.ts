import type { Task } from './task.ts';
import { isAtRest } from './task-report.ts';

/** Tasks that somebody waits for, and those that they come after, as they were when last looked at. */
export class TaskWait {
  readonly #find: (idOrName: string) => Promise<Task>;
  readonly #known = new Map<string, Task>();
  readonly #asked: string[] = [];

  constructor(find: (idOrName: string) => Promise<Task>) {
    this.#find = find;
  }

  async begin(asked: readonly string[]): Promise<void> {
    for (const one of asked) this.#asked.push(await this.#look(one));
  }

  /** Looks again at those that may have moved; null: at all of them. Others than ours are passed over. */
  async moved(ids: Iterable<string> | null): Promise<void> {
    for (const id of ids ?? [...this.#known.keys()]) if (this.#known.has(id)) await this.#look(id);
  }

  get tasks(): Task[] {
    return this.#asked.map((id) => this.#known.get(id) as Task);
  }

  get isOver(): boolean {
    return this.tasks.every((task) => isAtRest(task, this.#known));
  }

  async #look(idOrName: string): Promise<string> {
    const task = await this.#find(idOrName);
    this.#known.set(task.id, task);
    for (const first of task.after) if (!this.#known.has(first)) await this.#look(first);
    return task.id;
  }
}
