import type { CheckedRange } from '../../../core/input/arguments.ts';
import type { Receipt } from '../../../core/restore/receipt.ts';
import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { PlacedReceipt } from '../../../ports/store/sessions.ts';
import type { Stamp, TurnName } from '../../shared/ledger.ts';
import { usageSince } from '../../shared/totals.ts';
import { conversationNo } from '../conversations/conversations.ts';
import type { Ledger } from '../conversations/ledger.ts';
import type { Sql } from '../server/connect.ts';
import { addSessionUsage } from './sessions.ts';
import { countTurns } from './totals.ts';

const FIND = 'SELECT body FROM receipts WHERE conv = $1 AND turn = $2 AND warm = $3 AND attempt = $4';
const SAVE = `
  INSERT INTO receipts (owner, conv, turn, warm, attempt, body) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (conv, turn, warm, attempt) DO UPDATE SET body = excluded.body`;
const ALL = 'SELECT body FROM receipts WHERE conv = $1 ORDER BY turn, warm, attempt';
const OF_TURN = 'SELECT body FROM receipts WHERE conv = $1 AND turn = $2 AND warm = 0 ORDER BY attempt';
/** Of so many turns: the rows up to the last of them, or from the first of them on. */
const AFTER = `
  SELECT turn, body FROM receipts WHERE conv = $1 AND turn > $2 AND turn <= (
    SELECT max(turn) FROM (SELECT DISTINCT turn FROM receipts WHERE conv = $1 AND turn > $2 ORDER BY turn LIMIT $3) AS found
  ) ORDER BY turn, warm, attempt`;
const BEFORE = `
  SELECT turn, body FROM receipts WHERE conv = $1 AND turn < $2 AND turn >= (
    SELECT min(turn) FROM (SELECT DISTINCT turn FROM receipts WHERE conv = $1 AND turn < $2 ORDER BY turn DESC LIMIT $3) AS found
  ) ORDER BY turn, warm, attempt`;

/** A receipt is written before the prompt and again when more is known. Only the added usage is counted. */
export async function writeReceipt(
  ledger: Ledger,
  receipt: Receipt,
  turn: TurnName | null,
  session: string | null,
  stamp: Stamp,
): Promise<void> {
  const { tx, row } = ledger;
  const place = [row.conv, receipt.turn ?? row.head, receipt.turn === null ? row.epoch : 0, receipt.attempt];
  const name = `receipt ${place}`;
  ledger.reads(name);
  ledger.writes(name);
  const before = await tx.sql.one<{ body: string }>(FIND, ...place);
  tx.sql.run(SAVE, row.owner, ...place, JSON.stringify(receipt));
  const added = usageSince(receipt.usage, before === undefined ? NO_USAGE : (JSON.parse(before.body) as Receipt).usage);
  if (added !== null) {
    if (session !== null) await addSessionUsage(ledger, session, added);
    await countTurns(ledger, [], { beside: added, spent: { agent: receipt.agent, turns: 0, usage: added } });
  }
  ledger.append('restore.receipt', turn, receipt, stamp);
}

interface ReceiptRow {
  readonly turn: number;
  readonly body: string;
}

export async function receipts(
  sql: Sql,
  owner: string,
  id: string,
  { turn }: { turn?: number } = {},
): Promise<Receipt[]> {
  const no = await conversationNo(sql, owner, id);
  const rows = turn === undefined ? await sql.all<ReceiptRow>(ALL, no) : await sql.all<ReceiptRow>(OF_TURN, no, turn);
  return rows.map(({ body }) => JSON.parse(body) as Receipt);
}

/** A page. Receipts are small, so it is not cut by its size. */
export async function restores(sql: Sql, owner: string, id: string, range: CheckedRange): Promise<PlacedReceipt[]> {
  // The start includes warm-ups before the first turn.
  const [text, from] = 'after' in range ? [AFTER, range.after || -1] : [BEFORE, range.before];
  const rows = await sql.all<ReceiptRow>(text, await conversationNo(sql, owner, id), from, Math.max(0, range.limit));
  return rows.map(({ turn, body }) => ({ n: turn, receipt: JSON.parse(body) as Receipt }));
}
