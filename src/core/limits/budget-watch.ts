import { isObject } from '../turn/content.ts';
import { tokensSpent, type Update } from '../turn/update.ts';
import { type Budget, NO_BUDGET } from './budget.ts';

/**
 * Compares what an agent reports during a turn with the rest of the budget: the tokens of the turn, and the cost of the session
 * (ACP's `usage_update`). An agent that reports only at the end of a turn is not stopped by it.
 */
export class BudgetWatch {
  /** The cost of the session, as last reported; null: unknown. */
  #reported: number | null;
  #before: number | null = null;
  #left: Budget = NO_BUDGET;
  /** More was spent in this turn than was left. */
  over = false;

  /** `isNew`: nothing was spent in the session before. */
  constructor(isNew: boolean) {
    this.#reported = isNew ? 0 : null;
  }

  /** A turn begins. `left`: what it may spend. */
  begin(left: Budget): void {
    this.#before = this.#reported;
    this.#left = left;
    this.over = false;
  }

  /** True: the turn must spend no more. */
  see(update: Update): boolean {
    const spent = isReached(this.#left.tokens, tokensSpent(update));
    const cost = isReached(this.#left.costMicros, this.#costIn(update));
    this.over ||= spent || cost;
    return this.over;
  }

  /** The cost of the turn so far; null: the update does not report it. */
  #costIn(update: Update): number | null {
    const reported = costOf(update);
    if (reported === null) return null;
    this.#reported = reported;
    // The first report of a session that was used before may include earlier turns.
    this.#before ??= reported;
    // Some agents count from 0 again when their process restarts.
    if (reported < this.#before) this.#before = 0;
    return reported - this.#before;
  }
}

function isReached(left: number | null, spent: number | null): boolean {
  return left !== null && spent !== null && spent >= left;
}

function costOf(update: Update): number | null {
  const { cost } = update.sessionUpdate === 'usage_update' ? (update as { cost?: unknown }) : {};
  if (!isObject(cost) || cost.currency !== 'USD' || typeof cost.amount !== 'number') return null;
  return Number.isFinite(cost.amount) ? Math.round(cost.amount * 1_000_000) : null;
}
