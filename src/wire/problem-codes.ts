import { ERROR_CODES, type ErrorCode, ThroughlineError } from '../core/errors.ts';

/** Codes that only HTTP has. */
const HTTP_CODES = [
  'unauthenticated',
  'forbidden',
  'misdirected',
  'method_not_allowed',
  'unsupported_media_type',
] as const;

export const PROBLEM_CODES = [...ERROR_CODES, ...HTTP_CODES] as const;
export type ProblemCode = (typeof PROBLEM_CODES)[number];

/** A new code does not compile until it has a status. */
export const STATUS: Readonly<Record<ProblemCode, number>> = {
  invalid: 400,
  not_found: 404,
  conflict: 409,
  log_changed: 409,
  refused: 422,
  agent_unavailable: 422,
  too_long: 422,
  session_locked: 423,
  signed_out: 424,
  agent_failed: 424,
  agent_died: 424,
  restore_failed: 424,
  context_refuted: 424,
  permission_denied: 409,
  timed_out: 424,
  stalled: 424,
  over_budget: 429,
  cancelled: 409,
  interrupted: 409,
  lease_lost: 503,
  storage_full: 507,
  storage_readonly: 507,
  storage_gone: 503,
  storage_lost: 500,
  storage_damaged: 500,
  storage_newer: 500,
  storage_busy: 503,
  closed: 503,
  unreachable: 503,
  internal: 500,
  unauthenticated: 401,
  forbidden: 403,
  misdirected: 421,
  method_not_allowed: 405,
  too_large: 413,
  unsupported_media_type: 415,
  too_many: 429,
};

/**
 * The HTTP status with which the server of Throughline answers an error, for web applications that embed the library; 500 for any
 * other error than a `ThroughlineError`.
 *
 * @example
 * import { statusOf } from 'throughline';
 *
 * const answer = (error: Error) => Response.json({ message: error.message }, { status: statusOf(error) });
 */
export function statusOf(error: unknown): number {
  return error instanceof ThroughlineError ? STATUS[error.code] : STATUS.internal;
}

/** The code of the `ThroughlineError` that a client throws for a problem. */
export function errorCodeOf(code: ProblemCode): ErrorCode {
  const known = (ERROR_CODES as readonly string[]).includes(code);
  return known ? (code as ErrorCode) : 'refused';
}

export const PROBLEM_TYPE = 'application/problem+json';

/** The name of a message that ends a stream. Its data is a problem that reconnecting would not solve. */
export const PROBLEM_EVENT = 'problem';
