/** How long to wait for a locked session: the first wait, the longest (each is twice the one before), and all waits together. */
export interface LockSettings {
  readonly firstMs: number;
  readonly longestMs: number;
  readonly totalMs: number;
}

/** The waits of one turn so far, for the receipt. */
export interface LockWaits {
  readonly count: number;
  readonly ms: number;
}

/** How long the next wait is; null: the limit is reached. */
export function nextLockWait({ firstMs, longestMs, totalMs }: LockSettings, { count, ms }: LockWaits): number | null {
  const next = Math.min(firstMs * 2 ** count, longestMs, totalMs - ms);
  return next > 0 ? next : null;
}

export function afterLockWait({ count, ms }: LockWaits, waitMs: number): LockWaits {
  return { count: count + 1, ms: ms + waitMs };
}
