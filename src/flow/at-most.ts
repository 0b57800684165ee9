/** Limits how much work runs at a time. The rest waits, and runs in the order in which it was asked for. */
export class AtMost {
  readonly #most: number;
  readonly #longestMs: number;
  /** Each is called with true when it may run, with false when it was aborted before. */
  readonly #waiting = new Set<(mayRun: boolean) => void>();
  #running = 0;

  /** `most`: how many run at a time. `longestMs`: work that takes longer continues, and is no longer counted. */
  constructor({ most, longestMs }: { most: number; longestMs: number }) {
    this.#most = most;
    this.#longestMs = longestMs;
  }

  /** Runs the work when its turn has come. If the signal is aborted before that, the work runs at once, and finds the signal aborted. */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    let counts = await this.#inTurn(signal);
    const end = () => {
      clearTimeout(late);
      if (counts) this.#passOn();
      counts = false;
    };
    const late = setTimeout(end, this.#longestMs).unref();
    try {
      return await work();
    } finally {
      end();
    }
  }

  /** False: aborted before its turn came. */
  async #inTurn(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (this.#running < this.#most) {
      this.#running += 1;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiting.add(resolve);
    const giveUp = () => {
      if (this.#waiting.delete(resolve)) resolve(false);
    };
    signal.addEventListener('abort', giveUp);
    return promise.finally(() => signal.removeEventListener('abort', giveUp));
  }

  #passOn(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#running -= 1;
    else if (this.#waiting.delete(next)) next(true);
  }
}
