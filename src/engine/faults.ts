import { ThroughlineError } from '../core/errors.ts';

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
