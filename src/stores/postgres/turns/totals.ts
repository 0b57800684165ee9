import { noSuchConversation } from '../../../core/errors.ts';
import type { UsagePage } from '../../../core/input/usage-page.ts';
import type { Budget } from '../../../core/limits/budget.ts';
import { NO_SPENDING, spendingOf } from '../../../core/limits/spending.ts';
import type { Summary } from '../../../core/summary.ts';
import { addUsage, NO_USAGE, type Usage } from '../../../core/turn/usage.ts';
import type { LastUsage, Spending, UsageRow } from '../../../ports/store/usage.ts';
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
import type { Sql } from '../server/connect.ts';

const LIMITS = 'SELECT limits FROM conversations WHERE id = $1 AND owner = $2';
const TOTALS = 'SELECT * FROM totals WHERE conv = $1';
const COUNT_SESSION = 'UPDATE totals SET sessions = sessions + 1 WHERE conv = $1';
const SAVE = `
  UPDATE totals SET completed = $1, first_n = $2, first_at = $3, last_n = $4, last_at = $5, changes = $6, last_session = $7, usage = $8
  WHERE conv = $9`;
// Conversations of one owner end turns at the same time: the row is made first, and then locked.
const MAKE_DAY = `
  INSERT INTO usage_days (owner, day, agent, turns, usage) VALUES ($1, $2, $3, 0, $4) ON CONFLICT DO NOTHING`;
const DAY = 'SELECT turns, usage FROM usage_days WHERE owner = $1 AND day = $2 AND agent = $3 FOR NO KEY UPDATE';
const SAVE_DAY = 'UPDATE usage_days SET turns = turns + $4, usage = $5 WHERE owner = $1 AND day = $2 AND agent = $3';
const OWNERS_DAY = 'SELECT usage FROM usage_days WHERE owner = $1 AND day = $2';
const LAST_SPENT = 'SELECT day, day_spent AS spent FROM totals WHERE conv = $1';
const SAVE_SPENT = 'UPDATE totals SET day = $1, day_spent = $2 WHERE conv = $3';
const DAYS = `
  SELECT day, agent, turns, usage FROM usage_days
  WHERE owner = $1 AND day BETWEEN $2 AND $3 AND (day < $3 OR agent > $4) ORDER BY day DESC, agent LIMIT $5`;
const HOLDER = `
  SELECT l.pending, l.epoch, l.ready_at, w.id AS holder, w.process
  FROM leases l LEFT JOIN workers w ON w.no = l.worker WHERE l.conv = $1`;

export async function countSession({ tx, row }: Ledger): Promise<void> {
  tx.sql.run(COUNT_SESSION, row.conv);
}

/** Adds ended turns, in order, and what was spent outside turns (`beside`) to the conversation's totals. */
export async function countTurns({ tx, row }: Ledger, ended: readonly EndedTurn[], beside: Usage = NO_USAGE) {
  const totals = (await tx.sql.one<TotalsRow>(TOTALS, row.conv)) as TotalsRow;
  addEndedTurns(totals, ended, beside);
  const { completed, first_n, first_at, last_n, last_at, changes, last_session, usage } = totals;
  tx.sql.run(SAVE, completed, first_n, first_at, last_n, last_at, changes, last_session, usage, row.conv);
}

/** Adds to today's usage of owner and conversation. Imported and forked turns do not count: they were spent before or elsewhere. */
export async function countSpent({ tx, row }: Ledger, agent: string, turns: number, usage: Usage): Promise<void> {
  const day = dayOf(tx.now);
  const key = [row.owner, day, agent];
  tx.sql.run(MAKE_DAY, ...key, JSON.stringify(NO_USAGE));
  const before = (await tx.sql.one<{ usage: string }>(DAY, ...key)) as { usage: string };
  tx.sql.run(SAVE_DAY, ...key, turns, JSON.stringify(addUsage(usage, JSON.parse(before.usage))));
  const last = await tx.sql.one<SpentRow>(LAST_SPENT, row.conv);
  tx.sql.run(SAVE_SPENT, day, addSpent(day, last, usage), row.conv);
}

export async function spending(sql: Sql, owner: string, id: string | null, now: number): Promise<Spending> {
  const row = id === null ? null : await conversationRow(sql, owner, id);
  const day = dayOf(now);
  const agents = await sql.all<{ usage: string }>(OWNERS_DAY, owner, day);
  return {
    conversation: row === null ? NO_SPENDING : spentOn(day, await sql.one<SpentRow>(LAST_SPENT, row.no)),
    owner: spendingOf(agents.map(({ usage }) => JSON.parse(usage))),
  };
}

export async function limitPerDay(sql: Sql, owner: string, id: string): Promise<Budget | null> {
  const row = await sql.one<{ limits: string }>(LIMITS, id, owner);
  if (row === undefined) throw noSuchConversation(id);
  return row.limits === '{}' ? null : (JSON.parse(row.limits).perDay ?? null);
}

export async function usageDays(sql: Sql, owner: string, page: UsagePage<LastUsage> = {}): Promise<UsageRow[]> {
  const { since = '', limit, before = { day: LAST_DAY, agent: '' } } = page;
  type Row = Omit<UsageRow, 'usage'> & { usage: string };
  const rows = await sql.all<Row>(DAYS, owner, since, before.day, before.agent, limit ?? null);
  return pageOf(rows, (row) => ({ ...row, usage: JSON.parse(row.usage) }), { limit });
}

export async function summary(sql: Sql, owner: string, id: string, monotonic: number): Promise<Summary> {
  const { no, key, title } = await conversationRow(sql, owner, id);
  const totals = (await sql.one<TotalsRow>(TOTALS, no)) as TotalsRow;
  const lease = (await sql.one<HolderRow>(HOLDER, no)) as HolderRow;
  return summaryOf({ conversation: id, key, title }, totals, lease, monotonic);
}
