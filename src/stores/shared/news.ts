// What a store notifies its listeners of after a commit.

/** `moved`: the conversations and tasks that have changed; null: any may have. `own`: those that only the holder of their lease has written. */
export type Listener = (moved: readonly string[] | null, own?: ReadonlySet<string>) => void;

export class Listeners {
  readonly #all = new Set<Listener>();

  get size(): number {
    return this.#all.size;
  }

  /** Returns a function that removes the listener; it returns false if the listener was already removed. */
  add(listener: Listener): () => boolean {
    // A new function each time: a listener that is added twice is called twice, and each is removed by itself.
    const own: Listener = (moved, byHolder) => listener(moved, byHolder);
    this.#all.add(own);
    return () => this.#all.delete(own);
  }

  clear(): void {
    this.#all.clear();
  }

  call(...news: Parameters<Listener>): void {
    for (const listener of [...this.#all]) {
      try {
        listener(...news);
      } catch (error) {
        // A bug of the listener. The commit stays valid, so it is thrown outside of it.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

/** The conversations and tasks that a transaction has changed. */
export class News {
  readonly #ids = new Set<string>();
  readonly #byOthers = new Set<string>();

  /** `own`: the holder of the lease wrote it. */
  readonly add = (id: string, own = false): void => {
    this.#ids.add(id);
    if (!own) this.#byOthers.add(id);
  };

  get ids(): string[] {
    return [...this.#ids];
  }

  /** Those that only the holder of their lease has written. */
  get own(): ReadonlySet<string> {
    return this.#ids.difference(this.#byOthers);
  }
}
