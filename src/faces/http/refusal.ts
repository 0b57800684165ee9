import { ThroughlineError } from '../../core/errors.ts';
import { type Problem, problem } from '../../wire/problem.ts';
import type { ProblemCode } from '../../wire/problem-codes.ts';

/** A request is refused for a reason that only HTTP has. */
export class Refusal extends Error {
  readonly code: ProblemCode;
  readonly hint: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ProblemCode, message: string, options: { hint?: string; headers?: Record<string, string> } = {}) {
    super(message);
    this.code = code;
    this.hint = options.hint;
    this.headers = options.headers ?? {};
  }
}

const RETRY_SOON = { 'retry-after': '1' };
const TEMPORARY = [429, 503, 507];

/** A thrown error as problem details. The cause of an internal error is only in the log. */
export function problemOf(error: unknown): { body: Problem; headers: Readonly<Record<string, string>> } {
  if (!(error instanceof Refusal || error instanceof ThroughlineError) || error.code === 'internal') {
    return { body: problem('internal', 'Internal error.', 'See the log of the server.'), headers: {} };
  }
  const body = problem(error.code, error.message, error.hint);
  const again = TEMPORARY.includes(body.status) ? RETRY_SOON : {};
  return { body, headers: { ...again, ...(error instanceof Refusal ? error.headers : {}) } };
}
