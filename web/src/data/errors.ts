import { ThroughlineError } from 'throughline/client';

/** What happened, what to do, and the code that documents and logs use. */
export interface Told {
  readonly message: string;
  readonly hint: string | null;
  readonly code: string | null;
}

export function toldOf(error: unknown): Told {
  if (error instanceof ThroughlineError) return { message: error.message, hint: error.hint ?? null, code: error.code };
  return { message: error instanceof Error ? error.message : String(error), hint: null, code: null };
}
