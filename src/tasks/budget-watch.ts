import { isObject } from '../core/content.ts';
import type { Budget } from '../core/tasks/task.ts';
import { NO_BUDGET } from '../core/tasks/task-budget.ts';
import { tokensSpent, type Update } from '../core/update.ts';

/**
 * What an agent says in the middle of a turn that it has used, held against what is left of the budget: the tokens of the turn
 * (ours, from agents that tell them), and what the session has cost (ACP's `usage_update`). An agent that says it only at the
 * end of a turn is not stopped by it.
 */
export class BudgetWatch {
  /** What the session has cost, as last said; null: not known. */
  #said: number | null;
  #before: number | null = null;
  #left: Budget = NO_BUDGET;
  /** More was spent in this turn than was left. */
  over = false;

  /** `isNew`: nothing was spent in the session before. */
  constructor(isNew: boolean) {
    this.#said = isNew ? 0 : null;
  }

  /** A turn begins. `left`: what it may spend. */
  begin(left: Budget): void {
    this.#before = this.#said;
    this.#left = left;
    this.over = false;
  }

  /** True: from now on nothing more is to be spent. */
  see(update: Update): boolean {
    const spent = isReached(this.#left.tokens, tokensSpent(update));
    const cost = isReached(this.#left.costMicros, this.#costIn(update));
    this.over ||= spent || cost;
    return this.over;
  }

  /** What the turn has cost by now; null: the update does not say. */
  #costIn(update: Update): number | null {
    const said = costOf(update);
    if (said === null) return null;
    this.#said = said;
    // What is first said of a session that was used before may be of an earlier turn.
    this.#before ??= said;
    // Some agents begin anew when their process does.
    if (said < this.#before) this.#before = 0;
    return said - this.#before;
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
