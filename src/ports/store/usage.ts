import type { UsagePage } from '../../core/input/usage-page.ts';
import type { Spending } from '../../core/limits/spending.ts';
import type { Usage } from '../../core/turn/usage.ts';

/** What was spent. */
export interface UsageStore {
  /** Sums per day (UTC) and agent: newest day first, within a day by the agent's name; a page. */
  usage(owner: string, page?: UsagePage<LastUsage>): Promise<UsageRow[]>;
  /**
   * What a conversation and its owner have spent today (UTC), as far as turns and restores have ended. Costs the same at any length.
   * Throws `not_found`.
   */
  spending(owner: string, conversation: string): Promise<Spending>;
}

/**
 * What was used on one day (UTC) with one agent.
 *
 * @example
 * for (const row of await tl.usage()) console.log(row.day, row.agent, row.turns, row.usage.outputTokens);
 */
export interface UsageRow {
  readonly day: string;
  readonly agent: string;
  readonly turns: number;
  readonly usage: Usage;
}

/** What identifies a row. */
export type LastUsage = Pick<UsageRow, 'day' | 'agent'>;
