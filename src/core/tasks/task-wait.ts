import type { PublicTask } from '../public/task.ts';
import { taskHasEnded } from './task.ts';

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

  /** Reads those again that may have changed; null: all of them. Ignores ids of other things. */
  async moved(ids: Iterable<string> | null): Promise<void> {
    for (const id of ids ?? [...this.#known.keys()]) if (this.#known.has(id)) await this.#look(id);
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
  #hasRest({ state }: PublicTask): boolean | null {
    if (state === 'waiting') return null;
    return taskHasEnded(state) || state === 'asking';
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
