import type { TurnOutline, Usage } from 'throughline/client';
import { costText, tokensOf } from '../../../src/core/limits/budget.ts';
import { count } from '../ui/time.tsx';
import { spansOf } from './spans.ts';

/** The usage as the page shows it; null: the agent did not report it. */
export interface Amounts {
  readonly read: number | null;
  readonly written: number | null;
  readonly cached: number | null;
  readonly calls: number | null;
  /** In US dollars, as far as it is known. */
  readonly cost: number | null;
}

/** Whether the agent has reported its usage. If not, all values are zero. */
function isKnown(usage: Usage): boolean {
  return tokensOf(usage) > 0 || usage.modelCalls > 0 || usage.costMicros > 0;
}

export function amountsOf(usage: Usage): Amounts {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, modelCalls, costMicros } = usage;
  const hasTokens = tokensOf(usage) > 0;
  return {
    read: hasTokens ? inputTokens + cacheReadTokens + cacheWriteTokens : null,
    written: hasTokens ? outputTokens : null,
    cached: hasTokens ? cacheReadTokens : null,
    calls: isKnown(usage) ? modelCalls : null,
    cost: costMicros > 0 ? costMicros / 1_000_000 : null,
  };
}

export function shownCount(amount: number | null): string {
  return amount === null ? '–' : count(amount);
}

export function shownCost(usage: Usage): string {
  return costText(usage) ?? '–';
}

/** The values of all turns, in columns for the plot. */
export interface Points {
  readonly n: readonly number[];
  readonly read: readonly (number | null)[];
  readonly written: readonly (number | null)[];
  readonly cost: readonly (number | null)[];
  /** The turns at which another strand of the line began. */
  readonly seams: readonly number[];
}

export function pointsOf(turns: readonly TurnOutline[]): Points {
  const sent = turns.filter(({ sessionId }) => sessionId !== null);
  const amounts = sent.map(({ usage }) => amountsOf(usage));
  return {
    n: sent.map(({ n }) => n),
    read: amounts.map(({ read }) => read),
    written: amounts.map(({ written }) => written),
    cost: amounts.map(({ cost }) => cost),
    seams: spansOf(turns)
      .slice(1)
      .map(({ from }) => from),
  };
}
