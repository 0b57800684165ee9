import { checkLimit } from './arguments.ts';
import { ThroughlineError } from './errors.ts';
import type { Budget } from './task.ts';
import { parseBudget } from './task-budget.ts';

/** How a person has a task tried again, checked. */
export interface CheckedRetry {
  /** What the agent is told; null: nothing. */
  readonly say: string | null;
  readonly budget?: Budget;
  readonly maxIterations?: number;
}

/** Throws `invalid`. */
export function parseRetry(given: { say?: string; budget?: unknown; maxIterations?: number }): CheckedRetry {
  const { say, budget, maxIterations } = given;
  const amount = budget === undefined ? undefined : parseBudget(budget);
  if (amount === null) {
    throw new ThroughlineError('invalid', 'A budget says of what: "2.50 USD" or "50000 tokens".');
  }
  return {
    say: say === undefined ? null : checkSaid(say),
    ...(amount && { budget: amount }),
    ...(maxIterations !== undefined && { maxIterations: checkLimit(maxIterations, 1) }),
  };
}

const MOST_SAID = 100_000;

function checkSaid(say: unknown): string {
  if (typeof say === 'string' && say.trim() !== '' && say.length <= MOST_SAID && say.isWellFormed()) return say;
  throw new ThroughlineError('invalid', `What is said is a non-empty text of at most ${MOST_SAID} characters.`);
}
