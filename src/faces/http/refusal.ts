import { ThroughlineError } from '../../core/errors.ts';
import { type Problem, problem } from '../../wire/problem.ts';
import type { ProblemCode } from '../../wire/problem-codes.ts';

/** A request that is not served, for a reason that only HTTP has. */
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

export interface Refused {
  readonly body: Problem;
  readonly headers: Readonly<Record<string, string>>;
}

const SOON = { 'retry-after': '1' };
const PASSES = [429, 503, 507];

/** What was thrown, as problem details; null: it is a fault of this program. */
export function problemOf(error: unknown): Refused | null {
  if (!(error instanceof Refusal || error instanceof ThroughlineError) || error.code === 'internal') return null;
  const body = problem(error.code, error.message, error.hint);
  const again = PASSES.includes(body.status) ? SOON : {};
  return { body, headers: { ...again, ...(error instanceof Refusal ? error.headers : {}) } };
}

/** A fault of this program: the log has its cause, and the caller only that there was one. */
export const FAULT: Refused = {
  body: problem('internal', 'A fault of this program.', 'The log of the server says where.'),
  headers: {},
};
