import { ThroughlineError } from '../errors.ts';
import { shown } from '../input/arguments.ts';
import { checkWellFormed } from '../input/well-formed.ts';
import { type Budget, parseBudget } from '../limits/budget.ts';
import { isPermissionMode, type PermissionMode } from '../turn/turn.ts';

/** Checked options of `retry`. */
export interface CheckedRetry {
  /** A message for the agent; null: none. */
  readonly say: string | null;
  readonly budget?: Budget;
  readonly maxIterations?: number;
  readonly permissions?: PermissionMode;
}

/** Throws `invalid`. */
export function parseRetry(given: {
  say?: string;
  budget?: unknown;
  maxIterations?: number;
  permissions?: string;
}): CheckedRetry {
  const { say, budget, maxIterations, permissions } = given;
  const amount = budget === undefined ? undefined : parseBudget(budget);
  if (amount === null) {
    throw new ThroughlineError(
      'invalid',
      `A budget needs a unit: "2.50 USD" or "50000 tokens", not ${shown(budget)}.`,
      {
        hint: 'It is for the whole task, including what was spent so far.',
      },
    );
  }
  return {
    say: say === undefined ? null : checkSaid(say),
    ...(amount && { budget: amount }),
    ...(maxIterations !== undefined && { maxIterations: checkIterations(maxIterations) }),
    ...(permissions !== undefined && { permissions: checkPermissions(permissions) }),
  };
}

const MOST_SAID = 100_000;
const MOST_ITERATIONS = 10_000;

function checkIterations(given: unknown): number {
  if (Number.isSafeInteger(given) && (given as number) >= 1 && (given as number) <= MOST_ITERATIONS)
    return given as number;
  const what = `"maxIterations" must be a whole number from 1 to ${MOST_ITERATIONS}, not ${shown(given)}.`;
  throw new ThroughlineError('invalid', what, { hint: 'It counts turns after the retry.' });
}

function checkPermissions(given: string): PermissionMode {
  if (isPermissionMode(given)) return given;
  throw new ThroughlineError('invalid', `"permissions" must be "ask" or "deny", not ${shown(given)}.`);
}

function checkSaid(say: unknown): string {
  checkWellFormed(say, '"say"');
  if (typeof say === 'string' && say.trim() !== '' && say.length <= MOST_SAID) return say;
  throw new ThroughlineError('invalid', `"say" must be a non-empty text of at most ${MOST_SAID} characters.`, {
    hint: 'Leave it out to retry without a message.',
  });
}
