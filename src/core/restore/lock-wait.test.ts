import { expect, test } from 'vitest';
import { afterLockWait, type LockWaits, nextLockWait } from './lock-wait.ts';

test('a locked session is waited for longer each time, and not longer than all waits together may take', () => {
  const lock = { firstMs: 1, longestMs: 4, totalMs: 13 };
  let waits: LockWaits = { count: 0, ms: 0 };
  const all: number[] = [];
  for (let next = nextLockWait(lock, waits); next !== null; next = nextLockWait(lock, waits)) {
    all.push(next);
    waits = afterLockWait(waits, next);
  }
  expect(all).toEqual([1, 2, 4, 4, 2]);
  expect(waits).toEqual({ count: 5, ms: 13 });
});
