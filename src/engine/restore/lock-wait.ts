import { setTimeout as delay } from 'node:timers/promises';
import type { EngineSettings } from '../parts.ts';

/** Waits for a session that somebody else holds: doubling, bounded, and counted for the receipt. */
export class LockWait {
  readonly #lock: EngineSettings['lock'];
  count = 0;
  ms = 0;

  constructor(lock: EngineSettings['lock']) {
    this.#lock = lock;
  }

  /** How long the next wait is; null: the limit is reached. */
  get nextMs(): number | null {
    const { firstMs, longestMs, totalMs } = this.#lock;
    const next = Math.min(firstMs * 2 ** this.count, longestMs, totalMs - this.ms);
    return next > 0 ? next : null;
  }

  /** False: the limit is reached, or the signal aborted. */
  async wait(signal: AbortSignal): Promise<boolean> {
    const wait = this.nextMs;
    if (wait === null) return false;
    this.count += 1;
    this.ms += wait;
    return delay(wait, true, { signal }).catch(() => false);
  }
}
