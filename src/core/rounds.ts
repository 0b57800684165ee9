/**
 * Work that is done in rounds, one at a time. Whoever wakes it is sure that a round begins after that; many who do so during
 * a round share the next one.
 */
export class Rounds {
  readonly #round: () => Promise<void>;
  #running: Promise<void> | null = null;
  #again = false;
  #closed = false;

  /** `round` must not reject. */
  constructor(round: () => Promise<void>) {
    this.#round = round;
  }

  wake(): void {
    if (this.#closed) return;
    this.#again = true;
    this.#running ??= this.#run();
  }

  /** No round begins any more; resolves when the last one has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    // Not before `wake` has what this returns; else the last line would come first, when a round takes no time.
    await null;
    while (this.#again && !this.#closed) {
      this.#again = false;
      await this.#round();
    }
    // At once, and not when somebody hears that we are done: who wakes us in between would wake nobody.
    this.#running = null;
  }
}
