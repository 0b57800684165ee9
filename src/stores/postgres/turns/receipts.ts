import type { Receipt } from '../../../core/restore/receipt.ts';
import type { ToldPart } from '../../../core/restore/told.ts';
import type { Sent } from '../../../core/turn/turn.ts';
import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { Stamp, TurnName } from '../../shared/ledger.ts';
import { usageSince } from '../../shared/totals.ts';
import { linkContents, packValue } from '../conversations/content.ts';
import type { Ledger } from '../conversations/ledger.ts';
import { addSessionUsage } from './sessions.ts';
import { countTurns } from './totals.ts';

const FIND = 'SELECT body FROM receipts WHERE conv = $1 AND turn = $2 AND warm = $3 AND attempt = $4';
const SAVE = `
  INSERT INTO receipts (owner, conv, turn, warm, attempt, body) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (conv, turn, warm, attempt) DO UPDATE SET body = excluded.body`;

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

const ADD =
  'INSERT INTO told (owner, conv, session, turn, attempt, body, body_refs) VALUES ($1, $2, $3, $4, $5, $6, $7)';
const GIVE = 'UPDATE told SET turn = $1, attempt = $2 WHERE session = $3 AND turn IS NULL';

/** `told` undefined: the prompt of the turn, as it was given. */
export function writeTold(
  { tx, row }: Ledger,
  turn: TurnName,
  sent: Sent,
  told: readonly ToldPart[] | undefined,
): void {
  const { session, attempt } = sent;
  if (session !== null) tx.sql.run(GIVE, turn.no, attempt, session);
  if (told === undefined) return;
  const { bytes, refs, hashes } = packValue(tx.sql, row.owner, told);
  tx.sql.run(ADD, row.owner, row.conv, null, turn.no, attempt, bytes, refs);
  linkContents(tx.sql, row.owner, turn.no, hashes);
}

/** What a session was told before any turn was sent in it. Its images are those of earlier turns, which keep them. */
export function writeToldAhead({ tx, row }: Ledger, session: string, told: readonly ToldPart[]): void {
  const { bytes, refs } = packValue(tx.sql, row.owner, told);
  tx.sql.run(ADD, row.owner, row.conv, session, null, 0, bytes, refs);
}
