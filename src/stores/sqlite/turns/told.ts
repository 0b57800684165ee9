import type { ToldPart } from '../../../core/restore/told.ts';
import type { Sent } from '../../../core/turn/turn.ts';
import type { StoredTold } from '../../../ports/store/turns.ts';
import { unpackValue } from '../../shared/content.ts';
import type { TurnName } from '../../shared/ledger.ts';
import { TURN, type TurnRow } from '../../shared/rows.ts';
import { checkTold, ownPrompt } from '../../shared/told.ts';
import { linkContents, packValue } from '../conversations/content.ts';
import type { Ledger } from '../conversations/ledger.ts';
import type { Database } from '../file/database.ts';

/*
 * What a session was told with the prompt of a turn. A prompt that went out as it was given is the turn's own: then only its hash is
 * kept, in the fact of sending. Anything else is a row here: blocks before the prompt, a transcript that was put into the agent's
 * storage, prompts that were replayed. What a warm-up told a session waits until a turn is sent in it, and is that turn's from then on.
 */

const ADD = 'INSERT INTO told (owner, conv, session, turn, attempt, body, body_refs) VALUES (?, ?, ?, ?, ?, ?, ?)';
const AHEAD = 'SELECT 1 FROM told WHERE session = ? AND turn IS NULL LIMIT 1';
const GIVE = 'UPDATE told SET turn = ?, attempt = ? WHERE session = ? AND turn IS NULL';
const OF_ATTEMPT = 'SELECT session, body FROM told WHERE turn = ? AND attempt = ? ORDER BY no';
const TURN_BY_ID = `${TURN} WHERE t.id = ? AND c.owner = ?`;
const SENDINGS = "SELECT payload FROM events WHERE turn = ? AND kind = 'turn.sent' ORDER BY seq DESC";
const SESSION_ID = 'SELECT id FROM sessions WHERE ref = ? AND conv = ?';

/** `told` undefined: the prompt of the turn, as it was given. */
export function writeTold(
  { tx, row }: Ledger,
  turn: TurnName,
  sent: Sent,
  told: readonly ToldPart[] | undefined,
): void {
  const { session, attempt } = sent;
  // Mostly there is nothing, and the look takes a fifth of the time.
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

interface ToldRow {
  /** Null: it was told with the prompt, which is its last part. */
  readonly session: string | null;
  readonly body: Uint8Array;
}

export function told(db: Database, owner: string, id: string, attempt?: number): StoredTold | null {
  const turn = db.one<TurnRow>(TURN_BY_ID, id, owner);
  if (turn === undefined) return null;
  const sendings = db
    .all<{ payload: string }>(SENDINGS, turn.no)
    .map(({ payload }) => (JSON.parse(payload) as { sent: Sent }).sent);
  const sent = attempt === undefined ? sendings[0] : sendings.find((one) => one.attempt === attempt);
  if (sent === undefined) return null;
  const known = sent.session === null ? undefined : db.one<{ id: string }>(SESSION_ID, sent.session, turn.conv);
  const sessionId = known?.id ?? turn.sessionId;
  if (sent.told === undefined) return { sent, sessionId, parts: null };
  const rows = db.all<ToldRow>(OF_ATTEMPT, turn.no, sent.attempt);
  const kept = rows.flatMap(({ body }) => unpackValue<ToldPart[]>(db, owner, body));
  const parts = rows.some(({ session }) => session === null) ? kept : [...kept, ownPrompt(db, turn, sent.told)];
  checkTold(parts, sent.told, turn.n);
  return { sent, sessionId, parts };
}
