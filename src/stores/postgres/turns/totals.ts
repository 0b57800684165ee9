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
import type { Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';

const TOTALS = `
  SELECT completed, first_n, first_at, last_n, last_at, sessions, changes, last_session, usage, day, day_spent AS spent
  FROM totals WHERE conv = $1`;
const COUNT_SESSION = 'UPDATE totals SET sessions = sessions + 1 WHERE conv = $1';
const SAVE = `
  UPDATE totals SET completed = $1, first_n = $2, first_at = $3, last_n = $4, last_at = $5, changes = $6, last_session = $7, usage = $8,
    day = $9, day_spent = $10
  WHERE conv = $11`;
/** The sum as `addUsage` and `JSON.stringify` would write it, so that the row need not be read first. */
const SUM = `format('{${Object.keys(NO_USAGE)
  .map((name) => `"${name}":%s`)
  .join(',')}}', ${Object.keys(NO_USAGE)
  .map((name) => `coalesce((d.usage::json->>'${name}')::numeric, 0) + (excluded.usage::json->>'${name}')::numeric`)
  .join(', ')})`;
const ADD_DAY = `
  INSERT INTO usage_days AS d (owner, day, agent, turns, usage) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (owner, day, agent) DO UPDATE SET turns = d.turns + excluded.turns, usage = ${SUM}`;
const OWNERS_DAY = 'SELECT usage FROM usage_days WHERE owner = $1 AND day = $2';
const LAST_SPENT = 'SELECT day, day_spent AS spent FROM totals WHERE conv = $1';

export function countSession({ tx, row }: Ledger): void {
  tx.sql.run(COUNT_SESSION, row.conv);
}

/** What was spent today. Imported and forked turns do not count: they were spent before or elsewhere. */
interface Spent {
  readonly agent: string;
  readonly turns: number;
  readonly usage: Usage;
}

/** Adds ended turns, in order, and what was spent outside turns (`beside`) to the conversation's totals; `spent` to those of today. */
export async function countTurns(
  ledger: Ledger,
  ended: readonly EndedTurn[],
  { beside = NO_USAGE, spent }: { readonly beside?: Usage; readonly spent?: Spent } = {},
): Promise<void> {
  const { tx, row } = ledger;
  ledger.reads('totals');
  ledger.writes('totals');
  const totals = (await tx.sql.one<TotalsRow & SpentRow>(TOTALS, row.conv)) as TotalsRow & SpentRow;
  addEndedTurns(totals, ended, beside);
  const { completed, first_n, first_at, last_n, last_at, changes, last_session, usage } = totals;
  const today = spent === undefined ? [totals.day, totals.spent] : countToday(tx, row.owner, totals, spent);
  tx.sql.run(SAVE, completed, first_n, first_at, last_n, last_at, changes, last_session, usage, ...today, row.conv);
}

/** Adds to today's usage of the owner. Returns the day, and what the conversation has spent on it. */
function countToday(tx: Tx, owner: string, last: SpentRow, { agent, turns, usage }: Spent): [string, string] {
  const day = dayOf(tx.now);
  // All conversations of an owner count in this row.
  tx.last<Pick<Spent, 'turns' | 'usage'>>({
    ...{ text: ADD_DAY, key: [owner, day, agent], amount: { turns, usage: addUsage(NO_USAGE, usage) } },
    add: (a, b) => ({ turns: a.turns + b.turns, usage: addUsage(a.usage, b.usage) }),
    values: (all) => [all.turns, JSON.stringify(all.usage)],
  });
  return [day, addSpent(day, last, usage)];
}

export async function spending(sql: Sql, owner: string, conv: number, now: number): Promise<Spending> {
  const day = dayOf(now);
  const [agents, last] = await Promise.all([
    sql.all<{ usage: string }>(OWNERS_DAY, owner, day),
    sql.one<SpentRow>(LAST_SPENT, conv),
  ]);
  return {
    conversation: spentOn(day, last),
    owner: spendingOf(agents.map(({ usage }) => JSON.parse(usage))),
  };
}
