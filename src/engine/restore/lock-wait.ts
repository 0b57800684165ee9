import { setTimeout as delay } from 'node:timers/promises';
import type { EngineSettings } from '../parts.ts';

/** Waits for a session that somebody else holds: doubling, bounded, and counted for the receipt. */
export class LockWait {
  readonly #lock: EngineSettings['lock'];
  #next: number;
  count = 0;
  ms = 0;

  constructor(lock: EngineSettings['lock']) {
    this.#lock = lock;
    this.#next = lock.firstMs;
  }

  /** False: the patience is used up, or the signal aborted. */
  async wait(signal: AbortSignal): Promise<boolean> {
    const wait = Math.min(this.#next, this.#lock.longestMs, this.#lock.totalMs - this.ms);
    if (wait <= 0) return false;
    this.#next *= 2;
    this.count += 1;
    this.ms += wait;
    try {
      await delay(wait, undefined, { signal });
      return true;
    } catch {
      return false;
    }
  }

  get waits(): { count: number; ms: number } {
    return { count: this.count, ms: this.ms };
  }
}
