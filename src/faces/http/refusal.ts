import { ThroughlineError } from '../../core/errors.ts';
import { problem } from '../../wire/problem.ts';
import { PROBLEM_TYPE, type ProblemCode } from '../../wire/problem-codes.ts';

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

const SOON = { 'retry-after': '1' };

/** What was thrown, as problem details; null: it is a fault of this program. */
export function problemResponse(error: unknown): Response | null {
  if (!(error instanceof Refusal || error instanceof ThroughlineError)) return null;
  if (error.code === 'internal') return null;
  const body = problem(error.code, error.message, error.hint);
  const again = body.status === 503 || body.status === 507 || body.status === 429 ? SOON : {};
  const own = error instanceof Refusal ? error.headers : {};
  return new Response(JSON.stringify(body), {
    status: body.status,
    headers: { 'content-type': PROBLEM_TYPE, ...again, ...own },
  });
}

/** A fault of this program: the log has its cause, and the caller only that there was one. */
export function faultResponse(): Response {
  const body = problem('internal', 'A fault of this program.', 'The log of the server says where.');
  return new Response(JSON.stringify(body), { status: body.status, headers: { 'content-type': PROBLEM_TYPE } });
}
