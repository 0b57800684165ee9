/**
 * Sessions that stay open between turns: at most `limit`, least recently used first to go, each for at most `idleMs`.
 * It only keeps the order and the time; letting go is the caller's.
 */
export class WarmSessions<T> {
  readonly #limit: number;
  readonly #idleMs: number;
  readonly #letGo: (item: T) => void;
  /** In order of last use, oldest first: that is how a Map keeps its keys. */
  readonly #items = new Map<T, NodeJS.Timeout>();

  constructor(limit: number, idleMs: number, letGo: (item: T) => void) {
    this.#limit = limit;
    this.#idleMs = idleMs;
    this.#letGo = letGo;
  }

  get size(): number {
    return this.#items.size;
  }

  has(item: T): boolean {
    return this.#items.has(item);
  }

  keep(item: T): void {
    this.take(item);
    const timer = setTimeout(() => this.#release(item), this.#idleMs);
    this.#items.set(item, timer.unref());
    for (const oldest of this.#items.keys()) {
      if (this.#items.size <= this.#limit) break;
      this.#release(oldest);
    }
  }

  /** Takes it out, to be used or let go by the caller. */
  take(item: T): void {
    clearTimeout(this.#items.get(item));
    this.#items.delete(item);
  }

  close(): void {
    for (const item of [...this.#items.keys()]) this.take(item);
  }

  #release(item: T): void {
    this.take(item);
    this.#letGo(item);
  }
}
