import * as z from 'zod';
import { PROBLEM_CODES, type ProblemCode } from './problem-codes.ts';
import { namedObject } from './registry.ts';

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

/** RFC 9457, with what happened (`detail`) and what to do (`hint`). */
export const Problem = namedObject('Problem', {
  type: z.string(),
  title: z.string(),
  status: z.int(),
  code: z.enum(PROBLEM_CODES),
  detail: z.string(),
  hint: z.exactOptional(z.string()),
});
export type Problem = z.infer<typeof Problem>;

export function problem(code: ProblemCode, detail: string, hint?: string): Problem {
  const title = code.replaceAll('_', ' ');
  const known = { type: `urn:throughline:problem:${code}`, title, status: STATUS[code], code, detail };
  return hint === undefined ? known : { ...known, hint };
}
