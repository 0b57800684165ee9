/**
 * Claims in passes, one at a time. Every `wake` is followed by a pass that begins after it; many during one pass share the
 * next one.
 */
export class ClaimLoop {
  readonly #pass: () => Promise<void>;
  #running: Promise<void> | null = null;
  #again = false;
  #closed = false;

  /** `pass` claims whatever is free now. It must not reject. */
  constructor(pass: () => Promise<void>) {
    this.#pass = pass;
  }

  /** Something may have become claimable. */
  wake(): void {
    if (this.#closed) return;
    this.#again = true;
    this.#running ??= this.#run();
  }

  /** No pass begins any more; resolves when the last one has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    // `wake` must store the promise first: a pass that wakes the loop at once would else start a second one beside it.
    await null;
    while (this.#again && !this.#closed) {
      this.#again = false;
      await this.#pass();
    }
    // Here and not in a `then` of the caller: a wake in between would start no pass.
    this.#running = null;
  }
}
