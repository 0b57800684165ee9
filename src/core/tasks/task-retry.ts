import { ThroughlineError } from '../errors.ts';
import { shown } from '../shown.ts';
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
    throw new ThroughlineError(
      'invalid',
      `A budget says of what: "2.50 USD" or "50000 tokens", not ${shown(budget)}.`,
      {
        hint: 'It is for the task as a whole: what was spent so far counts.',
      },
    );
  }
  return {
    say: say === undefined ? null : checkSaid(say),
    ...(amount && { budget: amount }),
    ...(maxIterations !== undefined && { maxIterations: checkIterations(maxIterations) }),
  };
}

const MOST_SAID = 100_000;
const MOST_ITERATIONS = 10_000;

function checkIterations(given: unknown): number {
  if (Number.isSafeInteger(given) && (given as number) >= 1 && (given as number) <= MOST_ITERATIONS)
    return given as number;
  const what = `"maxIterations" is a whole number from 1 to ${MOST_ITERATIONS}, not ${shown(given)}.`;
  throw new ThroughlineError('invalid', what, { hint: 'It counts from the retry on.' });
}

function checkSaid(say: unknown): string {
  if (typeof say === 'string' && say.trim() !== '' && say.length <= MOST_SAID && say.isWellFormed()) return say;
  throw new ThroughlineError('invalid', `What is said is a non-empty text of at most ${MOST_SAID} characters.`, {
    hint: 'Leave it out to have the task tried again without a word.',
  });
}
