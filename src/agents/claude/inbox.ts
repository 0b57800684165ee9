/** Values on their way from one who does not wait to one who does. In order, nothing is lost; closed once. */
export class Inbox<T> implements AsyncIterable<T> {
  #values: T[] = [];
  #closed = false;
  #wake: (() => void) | null = null;

  /** What comes after the close is dropped. */
  push(value: T): void {
    if (this.#closed) return;
    this.#values.push(value);
    this.#wake?.();
  }

  /** What was pushed before is still given out. */
  close(): void {
    this.#closed = true;
    this.#wake?.();
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** For one reader. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      const values = this.#values;
      this.#values = [];
      yield* values;
      if (this.#values.length > 0) continue;
      if (this.#closed) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
  }
}
