/** How much of one turn of the event loop long work may take. */
const SLICE_MS = 10;

/**
 * Cuts long work into slices, so that a process answers others in between. All long work of one kind shares a pace: together it takes
 * a slice of each turn of the event loop, one after the other in the order in which they wait.
 */
export class Pace {
  readonly #now: () => number;
  readonly #afterThisTurn: (call: () => void) => unknown;
  readonly #waiting: (() => void)[] = [];
  /** When work began in this turn of the event loop; null: it has not. */
  #since: number | null = null;

  /** `afterThisTurn` is `setImmediate`. */
  constructor(now: () => number, afterThisTurn: (call: () => void) => unknown) {
    this.#now = now;
    this.#afterThisTurn = afterThisTurn;
  }

  /**
   * Whether the slice of this turn is used up, or others wait already: nobody overtakes them. Then wait for `next()` before doing
   * more.
   */
  get isOver(): boolean {
    return this.#waiting.length > 0 || this.#isUsedUp();
  }

  /** Resolves in a later turn of the event loop, with a slice of it. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#since === null) this.#begin();
    });
  }

  /** Runs the steps to their end, and waits between two of them whenever a slice is used up. */
  async run<T>(steps: Iterator<unknown, T>): Promise<T> {
    for (;;) {
      if (this.isOver) await this.next();
      const step = steps.next();
      if (step.done) return step.value;
    }
  }

  #isUsedUp(): boolean {
    if (this.#since === null) this.#begin();
    return this.#now() - (this.#since as number) >= SLICE_MS;
  }

  #begin(): void {
    this.#since = this.#now();
    this.#afterThisTurn(() => void this.#resume());
  }

  /** Of those that wait, as many as fit into the slice, and always one. */
  async #resume(): Promise<void> {
    this.#since = null;
    while (this.#waiting.length > 0 && !this.#isUsedUp()) {
      this.#waiting.shift()?.();
      // Lets the resumed work run before the next one is resumed.
      await undefined;
    }
  }
}
