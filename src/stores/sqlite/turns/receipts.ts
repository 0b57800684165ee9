import type { Receipt } from '../../../core/restore/receipt.ts';
import { NO_USAGE, type Usage } from '../../../core/turn/usage.ts';
import { conversationNo } from '../conversations/conversations.ts';
import type { Ledger, Stamp, TurnName } from '../conversations/ledger.ts';
import type { Database } from '../file/database.ts';
import { addSessionUsage } from './sessions.ts';
import { countSpent, countTurns } from './totals.ts';

const FIND = 'SELECT body FROM receipts WHERE conv = ? AND turn = ? AND warm = ? AND attempt = ?';
const SAVE = `
  INSERT INTO receipts (owner, conv, turn, warm, attempt, body) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (conv, turn, warm, attempt) DO UPDATE SET body = excluded.body`;
const ALL = 'SELECT body FROM receipts WHERE conv = ? ORDER BY turn, warm, attempt';
const OF_TURN = 'SELECT body FROM receipts WHERE conv = ? AND turn = ? AND warm = 0 ORDER BY attempt';

/** A receipt is written before the prompt and again when more is known. Only the added usage is counted. */
export function writeReceipt(
  ledger: Ledger,
  receipt: Receipt,
  turn: TurnName | null,
  session: string | null,
  stamp: Stamp,
): void {
  const { tx, row } = ledger;
  const place = [row.conv, receipt.turn ?? row.head, receipt.turn === null ? row.epoch : 0, receipt.attempt];
  const before = tx.db.one<{ body: string }>(FIND, ...place);
  tx.db.run(SAVE, row.owner, ...place, JSON.stringify(receipt));
  const earlier: Usage = before === undefined ? NO_USAGE : (JSON.parse(before.body) as Receipt).usage;
  const added = difference(receipt.usage, earlier);
  if (Object.values(added).some((amount) => amount !== 0)) {
    if (session !== null) addSessionUsage(ledger, session, added);
    countSpent(ledger, receipt.agent, 0, added);
    countTurns(ledger, [], added);
  }
  ledger.append('restore.receipt', turn, receipt, stamp);
}

export function receipts(db: Database, owner: string, id: string, { turn }: { turn?: number } = {}): Receipt[] {
  const no = conversationNo(db, owner, id);
  const rows = turn === undefined ? db.all<{ body: string }>(ALL, no) : db.all<{ body: string }>(OF_TURN, no, turn);
  return rows.map(({ body }) => JSON.parse(body) as Receipt);
}

function difference(now: Usage, before: Usage): Usage {
  const pairs = Object.entries(now).map(([name, amount]) => [name, amount - before[name as keyof Usage]]);
  return Object.fromEntries(pairs) as Usage;
}
