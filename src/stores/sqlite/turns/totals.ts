import { type Spending, spendingOf } from '../../../core/limits/spending.ts';
import { addUsage, NO_USAGE, type Usage } from '../../../core/turn/usage.ts';
import {
  addEndedTurns,
  addSpent,
  dayOf,
  type EndedTurn,
  type SpentRow,
  spentOn,
  type TotalsRow,
} from '../../shared/totals.ts';
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
