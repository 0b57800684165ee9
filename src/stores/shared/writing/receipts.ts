import type { Receipt } from '../../../core/restore/receipt.ts';
import type { ToldPart } from '../../../core/restore/told.ts';
import type { Sent } from '../../../core/turn/turn.ts';
import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { Stamp, TurnName } from '../ledger.ts';
import { usageSince } from '../totals.ts';
import { one, run, type Steps } from '../verbs/steps.ts';
import type { SharedLedger } from './ledger.ts';
import { addSessionUsage } from './sessions.ts';
import { countTurns } from './totals.ts';

const FIND = 'SELECT body FROM receipts WHERE conv = ? AND turn = ? AND warm = ? AND attempt = ?';
const SAVE = `
  INSERT INTO receipts (owner, conv, turn, warm, attempt, body) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (conv, turn, warm, attempt) DO UPDATE SET body = excluded.body`;

/** A receipt is written before the prompt and again when more is known. Only the added usage is counted. */
export function* writeReceipt(
  ledger: SharedLedger,
  receipt: Receipt,
  turn: TurnName | null,
  session: string | null,
  stamp: Stamp,
): Steps<void> {
  const { row } = ledger;
  const place = [row.conv, receipt.turn ?? row.head, receipt.turn === null ? row.epoch : 0, receipt.attempt];
  const name = `receipt ${place}`;
  ledger.reads(name);
  ledger.writes(name);
  const before = yield* one<{ body: string }>(FIND, ...place);
  yield* run(SAVE, row.owner, ...place, JSON.stringify(receipt));
  const added = usageSince(receipt.usage, before === undefined ? NO_USAGE : (JSON.parse(before.body) as Receipt).usage);
  if (added !== null) {
    if (session !== null) yield* addSessionUsage(ledger, session, added);
    yield* countTurns(ledger, [], { beside: added, spent: { agent: receipt.agent, turns: 0, usage: added } });
  }
  ledger.append('restore.receipt', turn, receipt, stamp);
}

/*
 * What a session was told with the prompt of a turn. A prompt that went out as it was given is the turn's own: then only its hash is
 * kept, in the fact of sending. Anything else is a row here: blocks before the prompt, a transcript that was put into the agent's
 * storage, prompts that were replayed. What a warm-up told a session waits until a turn is sent in it, and is that turn's from then on.
 */

const ADD = 'INSERT INTO told (owner, conv, session, turn, attempt, body, body_refs) VALUES (?, ?, ?, ?, ?, ?, ?)';
const GIVE = 'UPDATE told SET turn = ?, attempt = ? WHERE session = ? AND turn IS NULL';

/** `told` undefined: the prompt of the turn, as it was given. */
export function* writeTold(
  ledger: SharedLedger,
  turn: TurnName,
  { session, attempt }: Sent,
  told: readonly ToldPart[] | undefined,
): Steps<void> {
  const { row } = ledger;
  if (session !== null) yield* run(GIVE, turn.no, attempt, session);
  if (told === undefined) return;
  const { bytes, refs, hashes } = ledger.packValue(told);
  yield* run(ADD, row.owner, row.conv, null, turn.no, attempt, bytes, refs);
  ledger.linkContents(turn.no, hashes);
}

/** What a session was told before any turn was sent in it. Its images are those of earlier turns, which keep them. */
export function writeToldAhead(ledger: SharedLedger, session: string, told: readonly ToldPart[]): Steps<void> {
  const { row } = ledger;
  const { bytes, refs } = ledger.packValue(told);
  return run(ADD, row.owner, row.conv, session, null, 0, bytes, refs);
}
