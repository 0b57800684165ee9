import { addAbortListener } from 'node:events';
import { availableParallelism } from 'node:os';
import { LONGEST_TIMER_MS } from './parts.ts';

/*
 * Starting an agent takes a processor for a while: a runtime, its program, a handshake. When many conversations want one at the same
 * moment, all of them start at once, none gets ready, and the server itself gets no time to answer. So only some are started at a
 * time, in the order in which they were asked for.
 */

export class Starts {
  readonly #most: number;
  readonly #longestMs: number;
  /** Each is called when one of those who run no longer counts. */
  readonly #waiting = new Set<(mayRun: boolean) => void>();
  #running = 0;

  /** `most`: how many run at a time. `longestMs`: who takes longer goes on, and no longer counts. */
  constructor({ most, longestMs }: { most: number; longestMs: number }) {
    this.#most = most;
    this.#longestMs = longestMs;
  }

  /**
   * Resolves when its turn has come, with what to call at the end of its work. When the signal is aborted meanwhile, it resolves at
   * once: the work finds the same signal aborted.
   */
  async begin(signal: AbortSignal): Promise<() => void> {
    let counts = await this.#inTurn(signal);
    const end = () => {
      clearTimeout(late);
      if (counts) this.#passOn();
      counts = false;
    };
    const late = setTimeout(end, this.#longestMs).unref();
    return end;
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
    using _ = addAbortListener(signal, () => {
      if (this.#waiting.delete(resolve)) resolve(false);
    });
    return await promise;
  }

  #passOn(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#running -= 1;
    else if (this.#waiting.delete(next)) next(true);
  }
}

/**
 * For opening sessions. An agent that takes longer than a second waits for something else than a processor. The processors belong to
 * the machine, so all engines of a process share this.
 */
export const starts = new Starts({ most: Math.max(4, 2 * availableParallelism()), longestMs: 1_000 });

/** For agents that a request starts while its caller waits: however long they take, there are no more. */
export const askedStarts = new Starts({ most: 4, longestMs: LONGEST_TIMER_MS });
