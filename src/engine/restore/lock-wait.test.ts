import { expect, test } from 'vitest';
import { LockWait } from './lock-wait.ts';

test('a locked session is waited for longer each time, and not longer than all waits together may take', async () => {
  const lock = new LockWait({ firstMs: 1, longestMs: 4, totalMs: 13 });
  const waits: (number | null)[] = [];
  do waits.push(lock.nextMs);
  while (await lock.wait(new AbortController().signal));
  expect(waits).toEqual([1, 2, 4, 4, 2, null]);
  expect(lock).toMatchObject({ count: 5, ms: 13 });
});

test('a wait that is aborted ends at once', async () => {
  const lock = new LockWait({ firstMs: 3_600_000, longestMs: 3_600_000, totalMs: 3_600_000 });
  const stop = new AbortController();
  const waited = lock.wait(stop.signal);
  stop.abort();
  expect(await waited).toBe(false);
});
