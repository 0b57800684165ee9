import type { UsagePage } from '../../core/input/usage-page.ts';
import type { Usage } from '../../core/turn/usage.ts';

/** What was spent. */
export interface UsageStore {
  /** Sums per day (UTC) and agent, newest day first, and in a day by the agent's name; a page. */
  usage(owner: string, page?: UsagePage<LastUsage>): Promise<UsageRow[]>;
}

export interface UsageRow {
  readonly day: string;
  readonly agent: string;
  readonly turns: number;
  readonly usage: Usage;
}

/** What identifies a row. */
export type LastUsage = Pick<UsageRow, 'day' | 'agent'>;
