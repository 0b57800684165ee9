/** How many values may wait for the consumer before `ready` makes the producer wait. */
const FULL = 1_000;

/** A queue from a producer that does not wait to one consumer that does. Keeps the order and loses nothing. */
export class Inbox<T> implements AsyncIterable<T> {
  #values: T[] = [];
  closed = false;
  #released = false;
  #wakeConsumer: (() => void) | null = null;
  #wakeProducer: (() => void) | null = null;

  /** Values that come after `close` are dropped. */
  push(value: T): void {
    if (this.closed) return;
    this.#values.push(value);
    this.#wakeConsumer?.();
  }

  /** The consumer still gets what was pushed before. */
  close(): void {
    this.closed = true;
    this.#wakeConsumer?.();
    this.release();
  }

  /** The consumer has left: closes the queue, and drops what is in it. */
  discard(): void {
    this.#values = [];
    this.close();
  }

  /** Resolves when fewer than a thousand values wait, so that a slow consumer slows the agent instead of filling our memory. */
  async ready(): Promise<void> {
    while (this.#values.length >= FULL && !this.#released) {
      await new Promise<void>((resolve) => {
        this.#wakeProducer = resolve;
      });
    }
  }

  /** From now on `ready` does not wait. */
  release(): void {
    this.#released = true;
    this.#wakeProducer?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      const values = this.#values;
      this.#values = [];
      this.#wakeProducer?.();
      yield* values;
      if (this.#values.length > 0) continue;
      if (this.closed) return;
      await new Promise<void>((resolve) => {
        this.#wakeConsumer = resolve;
      });
      this.#wakeConsumer = null;
    }
  }
}
