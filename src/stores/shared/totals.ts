// Totals are updated with every turn, so that a summary costs the same at any length.

import { addSpending, type DaySpending, NO_SPENDING } from '../../core/limits/spending.ts';
import type { Summary } from '../../core/summary.ts';
import type { Standing } from '../../core/turn/standing.ts';
import type { TurnEnd } from '../../core/turn/turn.ts';
import { addUsage, NO_USAGE, type Usage } from '../../core/turn/usage.ts';
import type { Holding } from '../../ports/store/leases.ts';

export interface TotalsRow {
  completed: number;
  first_n: number | null;
  first_at: number | null;
  last_n: number | null;
  last_at: number | null;
  sessions: number;
  changes: number;
  last_session: string | null;
  usage: string;
}

export interface EndedTurn {
  readonly n: number;
  readonly at: number;
  readonly outcome: TurnEnd;
  /** Identifies its session; null: it had none. */
  readonly session: string | null;
  readonly usage: Usage;
}

/** Adds ended turns, in order, and what was spent outside turns (`beside`) to the totals of a conversation. */
export function addEndedTurns(totals: TotalsRow, ended: readonly EndedTurn[], beside: Usage = NO_USAGE): void {
  let usage = addUsage(beside, JSON.parse(totals.usage));
  for (const turn of ended) {
    usage = addUsage(usage, turn.usage);
    if (turn.session !== null) {
      if (totals.last_session !== null && totals.last_session !== turn.session) totals.changes += 1;
      totals.last_session = turn.session;
    }
    if (turn.outcome !== 'completed') continue;
    totals.completed += 1;
    totals.first_n ??= turn.n;
    totals.first_at ??= turn.at;
    totals.last_n = turn.n;
    totals.last_at = turn.at;
  }
  totals.usage = JSON.stringify(usage);
}

export function dayOf(now: number): string {
  return new Date(now).toISOString().slice(0, 10);
}

/** What a conversation spent on the last day on which it spent anything. Earlier days are not kept. */
export interface SpentRow {
  readonly day: string | null;
  readonly spent: string;
}

export function spentOn(day: string, last: SpentRow | undefined): DaySpending {
  // Older versions have stored it without `unpricedAgents`.
  return last?.day === day ? { ...NO_SPENDING, ...JSON.parse(last.spent) } : NO_SPENDING;
}

export function addSpent(day: string, last: SpentRow | undefined, agent: string, usage: Usage): string {
  return JSON.stringify(addSpending(spentOn(day, last), agent, usage));
}

/** A receipt is written before the prompt and again when more is known. Only the added usage is counted; null: none was. */
export function usageSince(now: Usage, before: Usage): Usage | null {
  const pairs = Object.entries(now).map(
    ([name, amount]) => [name, amount - (before[name as keyof Usage] ?? 0)] as const,
  );
  return pairs.some(([, amount]) => amount !== 0) ? (Object.fromEntries(pairs) as unknown as Usage) : null;
}

export interface HolderRow {
  readonly pending: number;
  readonly epoch: number;
  readonly ready_at: number | null;
  readonly holder: string | null;
  readonly process: string | null;
}

export function summaryOf(
  named: Pick<Summary, 'conversation' | 'key' | 'title'>,
  totals: TotalsRow,
  lease: HolderRow,
  monotonic: number,
): Summary {
  const { first_n, first_at, last_n, last_at } = totals;
  return {
    ...named,
    contexts: totals.completed,
    first: first_n === null || first_at === null ? null : { n: first_n, at: first_at },
    last: last_n === null || last_at === null ? null : { n: last_n, at: last_at },
    sessions: totals.sessions,
    changes: totals.changes,
    open: lease.pending,
    lock: lockOf(lease, monotonic),
    usage: JSON.parse(totals.usage),
  };
}

/** An expired lease locks nothing, though its holder may still renew it. */
function lockOf({ holder, process, epoch, ready_at }: HolderRow, monotonic: number): Summary['lock'] {
  if (holder === null || process === null || ready_at === null || ready_at <= monotonic) return null;
  return { holder, process: JSON.parse(process), epoch, expiresIn: Math.ceil(ready_at - monotonic) };
}

export interface StandingRow extends Omit<Standing, 'turn' | 'holder'>, Omit<Standing['turn'], 'id'> {
  readonly turn: string;
  readonly holder: string | null;
  readonly process: string | null;
  readonly ready_at: number | null;
}

export function standingOf(
  { turn: id, n, state, agent, holder, process, ready_at, ...rest }: StandingRow,
  now: number,
): Standing {
  const expired = ready_at === null || ready_at <= now;
  return {
    ...rest,
    turn: { id, n, state, agent },
    holder: holder === null || process === null ? null : { id: holder, process: JSON.parse(process), expired },
  };
}

export type HoldingRow = Omit<Holding, 'holder' | 'leftMs' | 'sessions'> &
  Readonly<Record<'process' | 'sessions', string>> & { readonly ready_at: number | null };

export function holdingOf({ process, ready_at, sessions, ...rest }: HoldingRow, monotonic: number): Holding {
  return {
    ...rest,
    holder: JSON.parse(process),
    leftMs: (ready_at ?? monotonic) - monotonic,
    sessions: JSON.parse(sessions),
  };
}
