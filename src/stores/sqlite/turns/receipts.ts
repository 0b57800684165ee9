import type { Receipt } from '../../../core/restore/receipt.ts';
import type { ToldPart } from '../../../core/restore/told.ts';
import type { Sent } from '../../../core/turn/turn.ts';
import { NO_USAGE, type Usage } from '../../../core/turn/usage.ts';
import type { Stamp, TurnName } from '../../shared/ledger.ts';
import { usageSince } from '../../shared/totals.ts';
import { linkContents, packValue } from '../conversations/content.ts';
import type { Ledger } from '../conversations/ledger.ts';
import { addSessionUsage } from './sessions.ts';
import { countSpent, countTurns } from './totals.ts';

const FIND = 'SELECT body FROM receipts WHERE conv = ? AND turn = ? AND warm = ? AND attempt = ?';
const SAVE = `
  INSERT INTO receipts (owner, conv, turn, warm, attempt, body) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (conv, turn, warm, attempt) DO UPDATE SET body = excluded.body`;

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

/*
 * What a session was told with the prompt of a turn. A prompt that went out as it was given is the turn's own: then only its hash is
 * kept, in the fact of sending. Anything else is a row here: blocks before the prompt, a transcript that was put into the agent's
 * storage, prompts that were replayed. What a warm-up told a session waits until a turn is sent in it, and is that turn's from then on.
 */

const ADD = 'INSERT INTO told (owner, conv, session, turn, attempt, body, body_refs) VALUES (?, ?, ?, ?, ?, ?, ?)';
const AHEAD = 'SELECT 1 FROM told WHERE session = ? AND turn IS NULL LIMIT 1';
const GIVE = 'UPDATE told SET turn = ?, attempt = ? WHERE session = ? AND turn IS NULL';

/** `told` undefined: the prompt of the turn, as it was given. */
export function writeTold(
  { tx, row }: Ledger,
  turn: TurnName,
  sent: Sent,
  told: readonly ToldPart[] | undefined,
): void {
  const { session, attempt } = sent;
  // Mostly there is nothing. The SELECT takes a fifth of the time of the UPDATE.
  if (session !== null && tx.db.one(AHEAD, session) !== undefined) tx.db.run(GIVE, turn.no, attempt, session);
  if (told === undefined) return;
  const { bytes, refs, hashes } = packValue(tx.db, row.owner, told);
  tx.db.run(ADD, row.owner, row.conv, null, turn.no, attempt, bytes, refs);
  linkContents(tx.db, row.owner, turn.no, hashes);
}

/** What a session was told before any turn was sent in it. Its images are those of earlier turns, which keep them. */
export function writeToldAhead({ tx, row }: Ledger, session: string, told: readonly ToldPart[]): void {
  const { bytes, refs } = packValue(tx.db, row.owner, told);
  tx.db.run(ADD, row.owner, row.conv, session, null, 0, bytes, refs);
}
