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

  /** Whether the slice of this turn is used up. Then wait for `next()` before doing more. */
  get isOver(): boolean {
    const now = this.#now();
    if (this.#since === null) this.#begin(now);
    return now - (this.#since ?? now) >= SLICE_MS;
  }

  /** Whether to wait for `next()` first: the slice is used up, or others came before and wait, whom nobody may overtake. */
  get mustWait(): boolean {
    return this.#waiting.length > 0 || this.isOver;
  }

  /** Short work that had waited is done: the next one comes in the same turn, if the slice is not used up. */
  passOn(): void {
    if (this.#waiting.length > 0 && !this.isOver) this.#waiting.shift()?.();
  }

  /** Resolves in a later turn of the event loop, with a slice of it. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#since === null) this.#begin(this.#now());
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

  #begin(now: number): void {
    this.#since = now;
    this.#afterThisTurn(() => {
      this.#since = null;
      const resume = this.#waiting.shift();
      if (this.#waiting.length > 0 || resume !== undefined) this.#begin(this.#now());
      resume?.();
    });
  }
}
