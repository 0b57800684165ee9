// Reads that have the same statements in all stores.

import { noSuchPermission, noSuchTurn } from '../../../core/errors.ts';
import type { ConversationEvent } from '../../../core/event.ts';
import type { CheckedRange } from '../../../core/input/arguments.ts';
import { sizeOf } from '../../../core/input/size.ts';
import type { TurnOutline } from '../../../core/public/turn.ts';
import type { UnknownPart } from '../../../core/restore/adopted.ts';
import { givenIn } from '../../../core/restore/receipt.ts';
import type { ReceiptRung } from '../../../core/restore/restore-settings.ts';
import type { Session } from '../../../core/restore/session.ts';
import type { Permission } from '../../../core/turn/permission.ts';
import type { TurnRecord } from '../../../core/turn/record.ts';
import type { Sent, Turn } from '../../../core/turn/turn.ts';
import type { NativeSession } from '../../../ports/store/sessions.ts';
import type { AskedAgent, PendingTurn, TurnStore } from '../../../ports/store/turns.ts';
import { noConversation } from '../ledger.ts';
import { LARGEST_PAGE, pageOf } from '../page.ts';
import {
  EVENT,
  type EventRow,
  eventOf,
  isName,
  type OutlineRow,
  outlineOf,
  PERMISSION,
  type PermissionRow,
  parsed,
  permissionOf,
  RECORD,
  type RecordRow,
  recordOf,
  SESSION,
  type SessionRow,
  sessionOf,
  TURN,
  type TurnRow,
  turnOf,
} from '../rows.ts';
import { chosenAgent } from '../turns.ts';
import { all, contents, each, LIMIT, one, type Steps, unindexed, unindexedNo } from './steps.ts';

/** Most reads need no more of a conversation. */
const CONVERSATION_NO = 'SELECT no, owner FROM conversations WHERE id = ?';
const LAST_AGENT = 'SELECT owner, last_agent AS agent FROM conversations WHERE id = ?';
const TURN_NO = 'SELECT no FROM turns WHERE conv = ? AND n = ?';
const TURN_EVENTS = `${EVENT} WHERE e.turn = ? AND e.seq > ? ORDER BY e.seq ${LIMIT}`;
const TURN_BY_ID = `${TURN} WHERE t.id = ? AND ${unindexed('c.owner')} = ?`;
const TURN_BY_REQUEST = `${TURN} WHERE t.owner = ? AND t.request_id = ? AND ${unindexed('c.owner')} = t.owner`;
const TURNS = `${TURN} WHERE t.conv = ? AND t.n > ? ORDER BY t.n ${LIMIT}`;
const TURNS_BEFORE = `${TURN} WHERE t.conv = ? AND t.n < ? ORDER BY t.n DESC ${LIMIT}`;
const TURN_OUTLINE = `
  SELECT id, n, state, agent, session_id AS "sessionId", sent, imported, usage, started_at AS "startedAt", ended_at AS "endedAt"
  FROM turns`;
const OUTLINE = `${TURN_OUTLINE} WHERE conv = ? AND n > ? ORDER BY n ${LIMIT}`;
const OUTLINE_BEFORE = `${TURN_OUTLINE} WHERE conv = ? AND n < ? ORDER BY n DESC ${LIMIT}`;
const GIVEN =
  'SELECT turn, warm, body FROM receipts WHERE conv = ? AND turn >= ? AND turn <= ? ORDER BY turn, warm, attempt';
const QUEUED = TURNS.replace('ORDER BY', "AND t.ended_at IS NULL AND t.state = 'queued' ORDER BY");
const PENDING = `
  ${TURN} WHERE t.owner = ? AND t.delivered = 0 AND t.no > ? AND ${unindexed('c.owner')} = t.owner ORDER BY t.no ${LIMIT}`;
const RECORDS_BEFORE = `${RECORD} WHERE r.conv = ? AND r.n <= ? ORDER BY r.n DESC ${LIMIT}`;
const RECORDS_AFTER = `${RECORD} WHERE r.conv = ? AND r.n > ? ORDER BY r.n ${LIMIT}`;
const HISTORY = 'SELECT history FROM leases WHERE conv = ?';
const PLACE = 'SELECT place FROM records WHERE conv = ? AND n <= ? ORDER BY n DESC LIMIT 1';
const UNKNOWN_PARTS = `
  SELECT r.n, t.agent, t.session_id AS "sessionId" FROM records r JOIN turns t ON t.no = r.turn
  WHERE r.conv = ? AND r.unknown_before = 1 ORDER BY r.n`;
// The conversation that can use it, else the last that had it.
const SESSION_HOME = `
  SELECT conv FROM sessions WHERE id = ? AND storage = ?
  ORDER BY (state IN ('live', 'dormant', 'unsettled')) DESC, no DESC LIMIT 1`;
const SESSIONS_BY_ID = `
  ${SESSION} WHERE ${unindexed('s.owner')} = ? AND s.id = ? AND ${unindexed('c.owner')} = s.owner ORDER BY s.used_at DESC, s.no DESC`;
const MIRROR_PIECES = `
  SELECT m.bytes FROM mirrors m JOIN sessions s ON s.no = m.session
  WHERE s.ref = ? AND ${unindexedNo('s.conv')} = ? ORDER BY m.start`;
const OPEN_PERMISSIONS = "SELECT id FROM permissions WHERE conv = ? AND state = 'open'";
const PERMISSION_BY_ID = `${PERMISSION} WHERE p.id = ? AND ${unindexed('c.owner')} = ?`;

/** The number of the owner's conversation inside the database. Throws `not_found`. */
export function* conversationNo(owner: string, id: string): Steps<number> {
  const row = yield* one<{ no: number; owner: string }>(CONVERSATION_NO, id);
  if (row === undefined || row.owner !== owner) throw noConversation();
  return row.no;
}

/** The number of turn `n`. Throws `not_found`. */
export function* turnNo(owner: string, id: string, n: number): Steps<number> {
  const row = yield* one<{ no: number }>(TURN_NO, yield* conversationNo(owner, id), n);
  if (row === undefined) throw noSuchTurn(String(n));
  return row.no;
}

export function findTurnRow(owner: string, id: string): Steps<TurnRow | undefined> {
  return one<TurnRow>(TURN_BY_ID, id, owner);
}

/** The owner's turn. Throws `not_found`. */
export function* turnRow(owner: string, id: string): Steps<TurnRow> {
  const row = yield* findTurnRow(owner, id);
  if (row === undefined) throw noSuchTurn(id);
  return row;
}

export function* readTurn(row: TurnRow): Steps<Turn> {
  return turnOf(yield* contents(row.owner, [{ json: row.prompt, refs: row.prompt_refs }]), row);
}

export function* readRecord(row: RecordRow): Steps<TurnRecord> {
  const [prompt, body] = [
    { json: row.prompt, refs: row.prompt_refs },
    { json: row.body, refs: row.body_refs },
  ];
  return recordOf(yield* contents(row.owner, [prompt, body]), row);
}

/** The values of the rows, each read by itself, up to the size of a page: long strings of the rest are not read. */
function* pageOfRead<Row, T>(rows: Iterable<Row>, read: (row: Row) => Steps<T>): Steps<T[]> {
  const page: T[] = [];
  let size = 0;
  for (const row of rows) {
    const value = yield* read(row);
    page.push(value);
    size += sizeOf(value);
    if (size >= LARGEST_PAGE) break;
  }
  return page;
}

/** The agent of the conversation's next turn. */
export function* agentFor(owner: string, request: AskedAgent): Steps<string> {
  const row = yield* one<{ owner: string; agent: string | null }>(LAST_AGENT, request.conversation);
  if (row === undefined || row.owner !== owner) throw noConversation();
  return chosenAgent(request, row.agent);
}

export function* turnEvents(
  owner: string,
  id: string,
  { after = 0, limit }: { after?: number; limit?: number } = {},
): Steps<ConversationEvent[]> {
  const turn = yield* turnRow(owner, id);
  const rows = yield* each<EventRow>(TURN_EVENTS, turn.no, after, Math.max(0, limit ?? Number.MAX_SAFE_INTEGER));
  return pageOf(rows, (row) => eventOf(turn.conversation, row), { limit });
}

export function* findTurn(owner: string, id: string): Steps<Turn | null> {
  const row = yield* findTurnRow(owner, id);
  return row === undefined ? null : yield* readTurn(row);
}

export function* findRequest(owner: string, requestId: string): Steps<Turn | null> {
  if (!isName(requestId)) return null;
  const row = yield* one<TurnRow>(TURN_BY_REQUEST, owner, requestId);
  return row === undefined ? null : yield* readTurn(row);
}

export function* turns(owner: string, id: string, range: CheckedRange): Steps<Turn[]> {
  const [text, from] = 'after' in range ? [TURNS, range.after] : [TURNS_BEFORE, range.before];
  const rows = yield* each<TurnRow>(text, yield* conversationNo(owner, id), from, Math.max(0, range.limit));
  const page = yield* pageOfRead(rows, readTurn);
  return 'after' in range ? page : page.reverse();
}

export function* outline(owner: string, id: string, range: CheckedRange): Steps<TurnOutline[]> {
  type SentRow = Omit<OutlineRow, 'rung' | 'given'> & { readonly sent: string | null };
  const [text, from] = 'after' in range ? [OUTLINE, range.after] : [OUTLINE_BEFORE, range.before];
  const no = yield* conversationNo(owner, id);
  const rows = yield* each<SentRow>(text, no, from, Math.max(0, range.limit));
  // Parsed here: PostgreSQL refuses to read a field of JSON that contains a NUL.
  const read = ({ sent, ...row }: SentRow) =>
    outlineOf({ ...row, rung: parsed<Sent>(sent)?.rung ?? null, given: null });
  const page = pageOf(rows, read);
  const turns = 'after' in range ? page : page.reverse();
  const [first, last] = [turns.at(0), turns.at(-1)];
  if (first === undefined || last === undefined) return [];
  const given = yield* givenTo(no, first.n, last.n);
  return turns.map((turn) => ({ ...turn, given: given.get(turn.n) ?? null }));
}

/** How sessions were given their context for these turns. A warm-up is kept under the turn before. */
function* givenTo(no: number, first: number, last: number): Steps<ReadonlyMap<number, ReceiptRung>> {
  const rows = yield* all<{ turn: number; warm: number; body: string }>(GIVEN, no, first - 1, last);
  const given = new Map<number, ReceiptRung>();
  for (const { turn, warm, body } of rows) {
    const rung = givenIn([JSON.parse(body)]);
    if (rung !== null) given.set(warm > 0 ? turn + 1 : turn, rung);
  }
  return given;
}

export function* queued(owner: string, id: string, { after, limit }: { after: number; limit: number }): Steps<Turn[]> {
  const rows = yield* each<TurnRow>(QUEUED, yield* conversationNo(owner, id), after, Math.max(0, limit));
  return yield* pageOfRead(rows, readTurn);
}

export function* pending(owner: string, { after, limit }: Parameters<TurnStore['pending']>[1]): Steps<PendingTurn[]> {
  const last = after === undefined ? 0 : (yield* turnRow(owner, after)).no;
  const rows = yield* each<TurnRow>(PENDING, owner, last, Math.max(0, limit));
  return yield* pageOfRead(rows, function* (row) {
    return { turn: yield* readTurn(row), seq: row.queued_seq };
  });
}

export function* recordsBefore(
  owner: string,
  id: string,
  { upTo, limit }: { upTo: number; limit: number },
): Steps<TurnRecord[]> {
  const rows = yield* each<RecordRow>(RECORDS_BEFORE, yield* conversationNo(owner, id), upTo, Math.max(0, limit));
  return yield* pageOfRead(rows, readRecord);
}

export function* recordsAfter(
  owner: string,
  id: string,
  { after, limit }: { after: number; limit: number },
): Steps<TurnRecord[]> {
  const rows = yield* each<RecordRow>(RECORDS_AFTER, yield* conversationNo(owner, id), after, Math.max(0, limit));
  return yield* pageOfRead(rows, readRecord);
}

/** Every record has its place in the history, so this is a subtraction. */
export function* countRecordsAfter(owner: string, id: string, after: number): Steps<number> {
  const no = yield* conversationNo(owner, id);
  const { history } = (yield* one<{ history: number }>(HISTORY, no)) as { history: number };
  return history - ((yield* one<{ place: number }>(PLACE, no, after))?.place ?? 0);
}

export function* unknownParts(owner: string, id: string): Steps<UnknownPart[]> {
  return yield* unknownPartsOf(yield* conversationNo(owner, id));
}

export function unknownPartsOf(conv: number): Steps<UnknownPart[]> {
  return all<UnknownPart>(UNKNOWN_PARTS, conv);
}

export function* sessionIsElsewhere(owner: string, id: string, native: NativeSession): Steps<boolean> {
  const conv = yield* conversationNo(owner, id);
  const home = yield* one<{ conv: number }>(SESSION_HOME, native.id, native.storage);
  return home !== undefined && home.conv !== conv;
}

export function* findSessions(owner: string, id: string): Steps<Session[]> {
  return isName(id) ? (yield* all<SessionRow>(SESSIONS_BY_ID, owner, id)).map(sessionOf) : [];
}

/** The copy of the transcript of a session; null: there is none. */
export function* transcript(owner: string, id: string, ref: string): Steps<Uint8Array | null> {
  const pieces = yield* all<{ bytes: Uint8Array }>(MIRROR_PIECES, ref, yield* conversationNo(owner, id));
  return pieces.length === 0 ? null : Buffer.concat(pieces.map((piece) => piece.bytes));
}

/** The owner's permission. Throws `not_found`. */
export function* permissionRow(owner: string, id: string): Steps<PermissionRow> {
  const row = yield* one<PermissionRow>(PERMISSION_BY_ID, id, owner);
  if (row === undefined) throw noSuchPermission(id);
  return row;
}

export function* findPermission(owner: string, id: string): Steps<Permission | null> {
  const row = yield* one<PermissionRow>(PERMISSION_BY_ID, id, owner);
  return row === undefined ? null : permissionOf(row);
}

export function* openPermissions(owner: string, conversation: string): Steps<string[]> {
  const open = yield* all<{ id: string }>(OPEN_PERMISSIONS, yield* conversationNo(owner, conversation));
  return open.map(({ id }) => id);
}
