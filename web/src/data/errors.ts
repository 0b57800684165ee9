import { ThroughlineError } from 'throughline/client';

/** What happened, what to do, and the code that the documentation and logs use. */
interface ErrorDescription {
  readonly message: string;
  readonly hint: string | null;
  readonly code: string | null;
}

export function describeError(error: unknown): ErrorDescription {
  if (error instanceof ThroughlineError) return { message: error.message, hint: error.hint ?? null, code: error.code };
  return { message: error instanceof Error ? error.message : String(error), hint: null, code: null };
}
