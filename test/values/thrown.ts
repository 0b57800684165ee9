import { ThroughlineError } from '../../src/core/errors.ts';

/** What a call throws, when it is one of ours; anything else is a bug and goes on. Null: it threw nothing. */
export function faultOf(call: () => unknown): ThroughlineError | null {
  try {
    call();
    return null;
  } catch (error) {
    if (error instanceof ThroughlineError) return error;
    throw error;
  }
}
