import { isObject } from '../core/content.ts';
import type { Update } from '../core/update.ts';

/**
 * What an agent says in the middle of a turn that its session has cost so far (ACP's `usage_update`), held against what is
 * left of the budget. Agents that say it only at the end of a turn are not stopped by it.
 */
export class CostWatch {
  /** Of the session, as last said; null: not known. */
  #said: number | null;
  #before: number | null = null;
  #left: number | null = null;
  /** More was spent in this turn than was left. */
  over = false;

  /** `isNew`: nothing was spent in the session before. */
  constructor(isNew: boolean) {
    this.#said = isNew ? 0 : null;
  }

  /** A turn begins. `left`: in millionths of a USD; null: as much as it takes. */
  begin(left: number | null): void {
    this.#before = this.#said;
    this.#left = left;
    this.over = false;
  }

  /** True: from now on nothing more is to be spent. */
  see(update: Update): boolean {
    const said = costOf(update);
    if (said === null) return false;
    this.#said = said;
    // What is first said of a session that was used before may be of an earlier turn.
    this.#before ??= said;
    // Some agents begin anew when their process does.
    if (said < this.#before) this.#before = 0;
    this.over ||= this.#left !== null && said - this.#before >= this.#left;
    return this.over;
  }
}

function costOf(update: Update): number | null {
  const { cost } = update.sessionUpdate === 'usage_update' ? (update as { cost?: unknown }) : {};
  if (!isObject(cost) || cost.currency !== 'USD' || typeof cost.amount !== 'number') return null;
  return Number.isFinite(cost.amount) ? Math.round(cost.amount * 1_000_000) : null;
}
