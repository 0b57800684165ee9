import type { CheckedRange } from '../../../core/input/arguments.ts';
import type { Receipt } from '../../../core/restore/receipt.ts';
import { NO_USAGE, type Usage } from '../../../core/turn/usage.ts';
import type { PlacedReceipt } from '../../../ports/store/sessions.ts';
import type { Stamp, TurnName } from '../../shared/ledger.ts';
import { usageSince } from '../../shared/totals.ts';
import { conversationNo } from '../conversations/conversations.ts';
import type { Ledger } from '../conversations/ledger.ts';
import type { Access } from '../file/access.ts';
import type { Database } from '../file/database.ts';
import { addSessionUsage } from './sessions.ts';
import { countSpent, countTurns } from './totals.ts';

const FIND = 'SELECT body FROM receipts WHERE conv = ? AND turn = ? AND warm = ? AND attempt = ?';
const SAVE = `
  INSERT INTO receipts (owner, conv, turn, warm, attempt, body) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (conv, turn, warm, attempt) DO UPDATE SET body = excluded.body`;
const PAGE = 500;
const ALL = `
  SELECT turn, warm, attempt, body FROM receipts WHERE conv = ? AND (turn, warm, attempt) > (?, ?, ?)
  ORDER BY turn, warm, attempt LIMIT ${PAGE}`;
/** Of so many turns: the rows up to the last of them, or from the first of them on. */
const AFTER = `
  SELECT turn, body FROM receipts WHERE conv = ?1 AND turn > ?2 AND turn <= (
    SELECT max(turn) FROM (SELECT DISTINCT turn FROM receipts WHERE conv = ?1 AND turn > ?2 ORDER BY turn LIMIT ?3)
  ) ORDER BY turn, warm, attempt`;
const BEFORE = `
  SELECT turn, body FROM receipts WHERE conv = ?1 AND turn < ?2 AND turn >= (
    SELECT min(turn) FROM (SELECT DISTINCT turn FROM receipts WHERE conv = ?1 AND turn < ?2 ORDER BY turn DESC LIMIT ?3)
  ) ORDER BY turn, warm, attempt`;
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
  const added = usageSince(receipt.usage, earlier);
  if (added !== null) {
    if (session !== null) addSessionUsage(ledger, session, added);
    countSpent(ledger, receipt.agent, 0, added);
    countTurns(ledger, [], added);
  }
  ledger.append('restore.receipt', turn, receipt, stamp);
}

interface ReceiptRow {
  readonly turn: number;
  readonly warm: number;
  readonly attempt: number;
  readonly body: string;
}

const BEFORE_ALL: ReceiptRow = { turn: -1, warm: 0, attempt: 0, body: '' };

/** Read in pages: a long conversation has very many. */
export async function receipts(
  access: Access,
  owner: string,
  id: string,
  { turn }: { turn?: number } = {},
): Promise<Receipt[]> {
  const read = (rows: readonly Pick<ReceiptRow, 'body'>[]) => rows.map(({ body }) => JSON.parse(body) as Receipt);
  const ofTurn = (db: Database) => read(db.all(OF_TURN, conversationNo(db, owner, id), turn ?? null));
  if (turn !== undefined) return access.read(ofTurn);
  const all: Receipt[] = [];
  const page = ({ turn, warm, attempt }: ReceiptRow) =>
    access.read((db) => {
      const rows = db.all<ReceiptRow>(ALL, conversationNo(db, owner, id), turn, warm, attempt);
      all.push(...read(rows));
      return rows.length < PAGE ? undefined : rows.at(-1);
    });
  for (let last: ReceiptRow | undefined = BEFORE_ALL; last !== undefined; ) last = await page(last);
  return all;
}

/** A page. Receipts are small, so it is not cut by its size. */
export function restores(db: Database, owner: string, id: string, range: CheckedRange): PlacedReceipt[] {
  // The start includes warm-ups before the first turn.
  const [sql, from] = 'after' in range ? [AFTER, range.after || -1] : [BEFORE, range.before];
  const rows = db.all<Pick<ReceiptRow, 'turn' | 'body'>>(sql, conversationNo(db, owner, id), from, range.limit);
  return rows.map(({ turn, body }) => ({ n: turn, receipt: JSON.parse(body) as Receipt }));
}
