import { setTimeout as sleep } from 'node:timers/promises';
import { isBusy, storageFault } from './faults.ts';

/**
 * Tries again while another process holds the lock, without blocking this one. The first try is made at once and
 * synchronously. Waits are short and random: two processes that met once should not meet again. Throws `storage_busy`.
 */
export async function whileBusy<T>(attempt: () => T, limitMs: number): Promise<T> {
  const start = performance.now();
  for (let tries = 1; ; tries += 1) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() - start >= limitMs) throw storageFault(error);
    }
    await sleep(1 + Math.random() * Math.min(2 * tries, 20));
  }
}
