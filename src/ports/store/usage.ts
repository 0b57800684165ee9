import type { Usage } from '../../core/usage.ts';

/** What was spent. */
export interface UsageStore {
  /** Sums per day (UTC) and agent, newest day first. */
  usage(owner: string, filter?: { since?: string }): Promise<UsageRow[]>;
}

export interface UsageRow {
  readonly day: string;
  readonly agent: string;
  readonly turns: number;
  readonly usage: Usage;
}
