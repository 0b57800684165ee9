import { addSpending, NO_SPENDING, type Spending } from '../../../core/limits/spending.ts';
import { NO_USAGE, type Usage } from '../../../core/turn/usage.ts';
import { addEndedTurns, addSpent, dayOf, type EndedTurn, type SpentRow, spentOn, type TotalsRow } from '../totals.ts';
import { conversationNo } from '../verbs/reading.ts';
import { all, one, run, type Steps, together } from '../verbs/steps.ts';
import type { SharedLedger } from './ledger.ts';

const TOTALS = `
  SELECT completed, first_n, first_at, last_n, last_at, sessions, changes, last_session, usage, day, day_spent AS spent
  FROM totals WHERE conv = ?`;
const COUNT_SESSION = 'UPDATE totals SET sessions = sessions + 1 WHERE conv = ?';
const SAVE = `
  UPDATE totals SET completed = ?, first_n = ?, first_at = ?, last_n = ?, last_at = ?, changes = ?, last_session = ?, usage = ?,
    day = ?, day_spent = ?
  WHERE conv = ?`;
const OWNERS_DAY = 'SELECT agent, usage FROM usage_days WHERE owner = ? AND day = ?';
const LAST_SPENT = 'SELECT day, day_spent AS spent FROM totals WHERE conv = ?';

export function countSession({ row }: SharedLedger): Steps<void> {
  return run(COUNT_SESSION, row.conv);
}

/** What was spent today. Imported and forked turns do not count: they were spent before or elsewhere. */
interface Spent {
  readonly agent: string;
  readonly turns: number;
  readonly usage: Usage;
}

/** Adds ended turns, in order, and what was spent outside turns (`beside`) to the conversation's totals; `spent` to those of today. */
export function* countTurns(
  ledger: SharedLedger,
  ended: readonly EndedTurn[],
  { beside = NO_USAGE, spent }: { readonly beside?: Usage; readonly spent?: Spent } = {},
): Steps<void> {
  const { tx, row } = ledger;
  ledger.reads('totals');
  ledger.writes('totals');
  const totals = (yield* one<TotalsRow & SpentRow>(TOTALS, row.conv)) as TotalsRow & SpentRow;
  addEndedTurns(totals, ended, beside);
  let today = [totals.day, totals.spent];
  if (spent !== undefined) {
    const day = dayOf(tx.now);
    ledger.addToDay(day, spent.agent, spent);
    today = [day, addSpent(day, totals, spent.agent, spent.usage)];
  }
  const { completed, first_n, first_at, last_n, last_at, changes, last_session, usage } = totals;
  yield* run(SAVE, completed, first_n, first_at, last_n, last_at, changes, last_session, usage, ...today, row.conv);
}

/** What the owner and this conversation have spent today. */
export function* spendingOf(owner: string, id: string, now: number): Steps<Spending> {
  return yield* spending(owner, yield* conversationNo(owner, id), now);
}

export function* spending(owner: string, conv: number, now: number): Steps<Spending> {
  const day = dayOf(now);
  const [agents, last] = yield* together(
    all<{ agent: string; usage: string }>(OWNERS_DAY, owner, day),
    one<SpentRow>(LAST_SPENT, conv),
  );
  return {
    conversation: spentOn(day, last),
    owner: agents.reduce((sum, { agent, usage }) => addSpending(sum, agent, JSON.parse(usage)), NO_SPENDING),
  };
}
