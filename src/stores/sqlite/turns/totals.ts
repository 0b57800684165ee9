import type { UsagePage } from '../../../core/input/usage-page.ts';
import { type Spending, spendingOf } from '../../../core/limits/spending.ts';
import type { Summary } from '../../../core/summary.ts';
import { addUsage, NO_USAGE, type Usage } from '../../../core/turn/usage.ts';
import type { LastUsage, UsageRow } from '../../../ports/store/usage.ts';
import { LAST_DAY, pageOf } from '../../shared/page.ts';
import {
  addEndedTurns,
  addSpent,
  dayOf,
  type EndedTurn,
  type HolderRow,
  type SpentRow,
  spentOn,
  summaryOf,
  type TotalsRow,
} from '../../shared/totals.ts';
import { conversationRow } from '../conversations/conversations.ts';
import type { Ledger } from '../conversations/ledger.ts';
import type { Database } from '../file/database.ts';

const TOTALS = 'SELECT * FROM totals WHERE conv = ?';
const COUNT_SESSION = 'UPDATE totals SET sessions = sessions + 1 WHERE conv = ?';
const SAVE = `
  UPDATE totals SET completed = ?, first_n = ?, first_at = ?, last_n = ?, last_at = ?, changes = ?, last_session = ?, usage = ?
  WHERE conv = ?`;
const DAY = 'SELECT turns, usage FROM usage_days WHERE owner = ? AND day = ? AND agent = ?';
const SAVE_DAY = `
  INSERT INTO usage_days (owner, day, agent, turns, usage) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (owner, day, agent) DO UPDATE SET turns = excluded.turns, usage = excluded.usage`;
const OWNERS_DAY = 'SELECT usage FROM usage_days WHERE owner = ? AND day = ?';
const LAST_SPENT = 'SELECT day, day_spent AS spent FROM totals WHERE conv = ?';
const SAVE_SPENT = 'UPDATE totals SET day = ?, day_spent = ? WHERE conv = ?';
const DAYS = `
  SELECT day, agent, turns, usage FROM usage_days
  WHERE owner = ?1 AND day BETWEEN ?2 AND ?3 AND (day < ?3 OR agent > ?4) ORDER BY day DESC, agent`;
const HOLDER = `
  SELECT l.pending, l.epoch, l.ready_at, w.id AS holder, w.process
  FROM leases l LEFT JOIN workers w ON w.no = l.worker WHERE l.conv = ?`;

export function countSession({ tx, row }: Ledger): void {
  tx.db.run(COUNT_SESSION, row.conv);
}

/** Adds ended turns, in order, and what was spent outside turns (`beside`) to the conversation's totals. */
export function countTurns({ tx, row }: Ledger, ended: readonly EndedTurn[], beside: Usage = NO_USAGE): void {
  const totals = tx.db.one<TotalsRow>(TOTALS, row.conv) as TotalsRow;
  addEndedTurns(totals, ended, beside);
  const { completed, first_n, first_at, last_n, last_at, changes, last_session, usage } = totals;
  tx.db.run(SAVE, completed, first_n, first_at, last_n, last_at, changes, last_session, usage, row.conv);
}

/** Adds to today's usage of owner and conversation. Imported and forked turns do not count: they were spent before or elsewhere. */
export function countSpent({ tx, row }: Ledger, agent: string, turns: number, usage: Usage): void {
  const day = dayOf(tx.now);
  const before = tx.db.one<{ turns: number; usage: string }>(DAY, row.owner, day, agent);
  const sum = before === undefined ? usage : addUsage(usage, JSON.parse(before.usage));
  tx.db.run(SAVE_DAY, row.owner, day, agent, (before?.turns ?? 0) + turns, JSON.stringify(sum));
  tx.db.run(SAVE_SPENT, day, addSpent(day, tx.db.one<SpentRow>(LAST_SPENT, row.conv), usage), row.conv);
}

export function spending(db: Database, owner: string, conv: number, now: number): Spending {
  const day = dayOf(now);
  const agents = db.all<{ usage: string }>(OWNERS_DAY, owner, day);
  return {
    conversation: spentOn(day, db.one<SpentRow>(LAST_SPENT, conv)),
    owner: spendingOf(agents.map(({ usage }) => JSON.parse(usage))),
  };
}

export function usageDays(db: Database, owner: string, page: UsagePage<LastUsage> = {}): UsageRow[] {
  const { since = '', limit, before = { day: LAST_DAY, agent: '' } } = page;
  const rows = db.each<Omit<UsageRow, 'usage'> & { usage: string }>(DAYS, owner, since, before.day, before.agent);
  return pageOf(rows, (row) => ({ ...row, usage: JSON.parse(row.usage) }), { limit });
}

export function summary(db: Database, owner: string, id: string, monotonic: number): Summary {
  const { no, key, title } = conversationRow(db, owner, id);
  const totals = db.one<TotalsRow>(TOTALS, no) as TotalsRow;
  const lease = db.one<HolderRow>(HOLDER, no) as HolderRow;
  return summaryOf({ conversation: id, key, title }, totals, lease, monotonic);
}
