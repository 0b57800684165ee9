import { ThroughlineError } from '../../src/core/errors.ts';

/** The `ThroughlineError` that a call throws; null: it throws nothing. Other errors are bugs, and are thrown on. */
export function faultOf(call: () => unknown): ThroughlineError | null {
  try {
    call();
    return null;
  } catch (error) {
    if (error instanceof ThroughlineError) return error;
    throw error;
  }
}
