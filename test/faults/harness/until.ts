import { setTimeout as pause } from 'node:timers/promises';

/**
 * Looks until there is something to see. Throws, with what was waited for, when it takes too long. A look may cost much: who has waited for
 * long looks less often.
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
    if (waited > ms) throw new Error(`waited ${ms} ms in vain for: ${what}`);
    await pause(Math.max(every, Math.min(waited / 20, 25)));
  }
}
