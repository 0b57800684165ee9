import * as z from 'zod';
import { PROBLEM_CODES, type ProblemCode, STATUS } from './problem-codes.ts';
import { namedObject } from './registry.ts';

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
