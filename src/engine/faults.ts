import { type ErrorCode, ThroughlineError } from '../core/errors.ts';

/** A full disk gets room, a lock is let go. */
export const PASSING: readonly ErrorCode[] = ['storage_full', 'storage_busy', 'storage_readonly'];

/** Faults of the storage that may pass. */
export function isPassing(error: unknown): error is ThroughlineError {
  return error instanceof ThroughlineError && PASSING.includes(error.code);
}

/** Faults that are no bugs of ours: the storage refuses, it was closed, or the lease is another's. */
export function isStorageFault(error: unknown): boolean {
  return (
    error instanceof ThroughlineError &&
    (error.code.startsWith('storage_') || error.code === 'closed' || error.code === 'lease_lost')
  );
}

export function isLost(error: unknown): boolean {
  return error instanceof ThroughlineError && error.code === 'lease_lost';
}
