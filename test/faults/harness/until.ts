import { setTimeout as pause } from 'node:timers/promises';

/**
 * Polls until `look` returns something. Throws, with what was waited for, after the time limit. Polls less often after a while, because
 * `look` may be expensive.
 */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  { ms = 120_000, every = 10 }: { ms?: number; every?: number } = {},
): Promise<Exclude<T, null | undefined | false>> {
  const start = performance.now();
  for (;;) {
    const seen = await look();
    if (seen !== null && seen !== undefined && seen !== false) return seen as Exclude<T, null | undefined | false>;
    const waited = performance.now() - start;
    if (waited > ms) throw new Error(`timed out after ${ms} ms, waiting for: ${what}`);
    await pause(Math.max(every, Math.min(waited / 20, 25)));
  }
}
