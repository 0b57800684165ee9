import { ThroughlineError } from '../errors.ts';
import { shown } from '../input/arguments.ts';
import { invalidValue, oneOf, whole } from '../input/schema.ts';
import { checkWellFormed } from '../input/well-formed.ts';
import { type Budget, parseBudget } from '../limits/budget.ts';
import { PERMISSION_MODES, type PermissionMode } from '../turn/turn.ts';

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
  say?: string | undefined;
  budget?: unknown;
  maxIterations?: number | undefined;
  permissions?: string | undefined;
}): CheckedRetry {
  const { say, budget, maxIterations, permissions } = given;
  const amount = budget === undefined ? undefined : parseBudget(budget);
  if (amount === null) {
    const message = `A budget needs a unit: "2.50 USD" or "50000 tokens", not ${shown(budget)}.`;
    const hint = 'It is for the whole task, including what was spent so far.';
    throw new ThroughlineError('invalid', message, { hint });
  }
  return {
    say: say === undefined ? null : checkSaid(say),
    ...(amount && { budget: amount }),
    ...(maxIterations !== undefined && { maxIterations: checkIterations(maxIterations) }),
    ...(permissions !== undefined && { permissions: checkPermissions(permissions) }),
  };
}

const MOST_SAID = 100_000;

function checkIterations(given: unknown): number {
  const report = invalidValue({ hint: 'It counts turns after the retry.' });
  return whole({ least: 1, most: 10_000 }).read(given, ['maxIterations'], report);
}

function checkPermissions(given: unknown): PermissionMode {
  return oneOf(PERMISSION_MODES).read(given, ['permissions'], invalidValue());
}

function checkSaid(say: unknown): string {
  checkWellFormed(say, '"say"');
  if (typeof say === 'string' && say.trim() !== '' && say.length <= MOST_SAID) return say;
  throw new ThroughlineError('invalid', `"say" must be a non-empty text of at most ${MOST_SAID} characters.`, {
    hint: 'Leave it out to retry without a message.',
  });
}
