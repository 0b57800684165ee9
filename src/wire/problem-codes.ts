import { ERROR_CODES, type ErrorCode } from '../core/errors.ts';

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

/** The program's own code for a problem, for clients that know only those. */
export function errorCodeOf(code: ProblemCode): ErrorCode {
  const known = (ERROR_CODES as readonly string[]).includes(code);
  return known ? (code as ErrorCode) : 'refused';
}

export const PROBLEM_TYPE = 'application/problem+json';

/** The name of a message that ends a stream, whose data is a problem: reconnecting would not help. */
export const PROBLEM_EVENT = 'problem';
