import type { ToldPart } from '../../../core/restore/told.ts';
import type { Sent } from '../../../core/turn/turn.ts';
import type { StoredTold } from '../../../ports/store/turns.ts';
import { type Json, unpackValue, unzipped } from '../../shared/content.ts';
import type { TurnName } from '../../shared/ledger.ts';
import { TURN, type TurnRow } from '../../shared/rows.ts';
import { checkTold, ownPrompt } from '../../shared/told.ts';
import { contentsOf, linkContents, packValue } from '../conversations/content.ts';
import type { Ledger } from '../conversations/ledger.ts';
import { unindexed, unindexedNo } from '../plans.ts';
import type { Sql } from '../server/connect.ts';

const ADD =
  'INSERT INTO told (owner, conv, session, turn, attempt, body, body_refs) VALUES ($1, $2, $3, $4, $5, $6, $7)';
const GIVE = 'UPDATE told SET turn = $1, attempt = $2 WHERE session = $3 AND turn IS NULL';
const OF_ATTEMPT = 'SELECT session, body FROM told WHERE turn = $1 AND attempt = $2 ORDER BY no';
const TURN_BY_ID = `${TURN} WHERE t.id = $1 AND ${unindexed('t.owner')} = $2`;
const SENDINGS = "SELECT payload FROM events WHERE turn = $1 AND kind = 'turn.sent' ORDER BY seq DESC";
const SESSION_ID = `SELECT id FROM sessions WHERE ref = $1 AND ${unindexedNo('conv')} = $2`;

/** `told` undefined: the prompt of the turn, as it was given. */
export async function writeTold(
  { tx, row }: Ledger,
  turn: TurnName,
  sent: Sent,
  told: readonly ToldPart[] | undefined,
): Promise<void> {
  const { session, attempt } = sent;
  if (session !== null) tx.sql.run(GIVE, turn.no, attempt, session);
  if (told === undefined) return;
  const { bytes, refs, hashes } = packValue(tx.sql, row.owner, told);
  tx.sql.run(ADD, row.owner, row.conv, null, turn.no, attempt, bytes, refs);
  linkContents(tx.sql, row.owner, turn.no, hashes);
}

/** What a session was told before any turn was sent in it. Its images are those of earlier turns, which keep them. */
export async function writeToldAhead({ tx, row }: Ledger, session: string, told: readonly ToldPart[]): Promise<void> {
  const { bytes, refs } = packValue(tx.sql, row.owner, told);
  tx.sql.run(ADD, row.owner, row.conv, session, null, 0, bytes, refs);
}

interface ToldRow {
  /** Null: it was told with the prompt, which is its last part. */
  readonly session: string | null;
  readonly body: Uint8Array;
}

export async function told(sql: Sql, owner: string, id: string, attempt?: number): Promise<StoredTold | null> {
  const turn = await sql.one<TurnRow>(TURN_BY_ID, id, owner);
  if (turn === undefined) return null;
  const payloads = await sql.all<{ payload: string }>(SENDINGS, turn.no);
  const sendings = payloads.map(({ payload }) => (JSON.parse(payload) as { sent: Sent }).sent);
  const sent = attempt === undefined ? sendings[0] : sendings.find((one) => one.attempt === attempt);
  if (sent === undefined) return null;
  const known = sent.session === null ? undefined : await sql.one<{ id: string }>(SESSION_ID, sent.session, turn.conv);
  const sessionId = known?.id ?? turn.sessionId;
  if (sent.told === undefined) return { sent, sessionId, parts: null };
  const rows = await sql.all<ToldRow>(OF_ATTEMPT, turn.no, sent.attempt);
  const values: Json[] = rows.map(({ body }) => ({ json: unzipped(body), refs: 1 }));
  const source = await contentsOf(sql, owner, [...values, { json: turn.prompt, refs: turn.prompt_refs }]);
  const kept = rows.flatMap(({ body }) => unpackValue<ToldPart[]>(source, owner, body));
  const withPrompt = rows.some(({ session }) => session === null);
  const parts = withPrompt ? kept : [...kept, ownPrompt(source, turn, sent.told)];
  checkTold(parts, sent.told, turn.n);
  return { sent, sessionId, parts };
}
