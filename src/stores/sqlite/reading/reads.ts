import { noSuchPermission, noSuchTurn, ThroughlineError } from '../../../core/errors.ts';
import type { ConversationEvent } from '../../../core/event.ts';
import type { CheckedRange } from '../../../core/input/arguments.ts';
import type { TurnOutline } from '../../../core/public/turn.ts';
import type { UnknownPart } from '../../../core/restore/adopted.ts';
import type { Session } from '../../../core/restore/session.ts';
import type { Permission } from '../../../core/turn/permission.ts';
import type { TurnRecord } from '../../../core/turn/record.ts';
import type { Turn } from '../../../core/turn/turn.ts';
import type { HistoryStore } from '../../../ports/store/history.ts';
import type { PermissionStore } from '../../../ports/store/permissions.ts';
import type { NativeSession } from '../../../ports/store/sessions.ts';
import type { PendingTurn, TurnStore } from '../../../ports/store/turns.ts';
import { type Bounds, pageOf, readable } from '../../shared/page.ts';
import {
  EVENT,
  type EventRow,
  eventOf,
  type OutlineRow,
  outlineOf,
  PERMISSION,
  type PermissionRow,
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
} from '../../shared/rows.ts';
import { conversationNo, conversationRow } from '../conversations/conversations.ts';
import { type Database, LIMIT } from '../file/database.ts';

// One statement and not two: followers read after every commit, and starting a read costs more than the lookup.
const CONVERSATION_NO = '(SELECT no FROM conversations WHERE id = ? AND owner = ?)';
const EVENTS = `${EVENT} WHERE e.conv = ${CONVERSATION_NO} AND e.seq > ? ORDER BY e.seq ${LIMIT}`;
const EVENTS_BEFORE = `${EVENT} WHERE e.conv = ${CONVERSATION_NO} AND e.seq < ? ORDER BY e.seq DESC ${LIMIT}`;
const TURN_NO = 'SELECT no FROM turns WHERE conv = ? AND n = ?';
const TURN_EVENTS_BEFORE = `${EVENT} WHERE e.turn = ? AND e.seq < ? ORDER BY e.seq DESC ${LIMIT}`;
const TURN_EVENTS = `${EVENT} WHERE e.turn = ? AND e.seq > ? ORDER BY e.seq`;
const TURN_BY_ID = `${TURN} WHERE t.id = ? AND c.owner = ?`;
const TURN_BY_REQUEST = `${TURN} WHERE t.owner = ? AND t.request_id = ? AND c.owner = t.owner`;
const TURNS = `${TURN} WHERE t.conv = ? AND t.n > ? ORDER BY t.n ${LIMIT}`;
const TURNS_BEFORE = `${TURN} WHERE t.conv = ? AND t.n < ? ORDER BY t.n DESC ${LIMIT}`;
const TURN_OUTLINE = `
  SELECT id, n, state, agent, session_id AS "sessionId", sent ->> 'rung' AS rung, imported, usage,
    started_at AS "startedAt", ended_at AS "endedAt"
  FROM turns`;
const OUTLINE = `${TURN_OUTLINE} WHERE conv = ? AND n > ? ORDER BY n ${LIMIT}`;
const OUTLINE_BEFORE = `${TURN_OUTLINE} WHERE conv = ? AND n < ? ORDER BY n DESC ${LIMIT}`;
const QUEUED = TURNS.replace('ORDER BY', "AND t.ended_at IS NULL AND t.state = 'queued' ORDER BY");
const PENDING = `${TURN} WHERE t.owner = ? AND t.delivered = 0 AND t.no > ? AND c.owner = t.owner ORDER BY t.no ${LIMIT}`;
const RECORDS_BEFORE = `${RECORD} WHERE r.conv = ? AND r.n <= ? ORDER BY r.n DESC ${LIMIT}`;
const RECORDS_AFTER = `${RECORD} WHERE r.conv = ? AND r.n > ? ORDER BY r.n ${LIMIT}`;
const PLACE = 'SELECT place FROM records WHERE conv = ? AND n <= ? ORDER BY n DESC LIMIT 1';
const UNKNOWN_PARTS = `
  SELECT r.n, t.agent, t.session_id AS sessionId FROM records r JOIN turns t ON t.no = r.turn
  WHERE r.conv = ? AND r.unknown_before = 1 ORDER BY r.n`;
const BEFORE = `AND (s.used_seq, s.no) < (?, ?) ORDER BY s.used_seq DESC, s.no DESC ${LIMIT}`;
const SESSIONS = `${SESSION} WHERE s.conv = ${CONVERSATION_NO} ${BEFORE}`;
const SESSIONS_OF_AGENT = `${SESSION} WHERE s.conv = ${CONVERSATION_NO} AND s.agent = ? ${BEFORE}`;
// The conversation that can use it, else the last that had it.
const SESSION_HOME = `
  SELECT conv FROM sessions WHERE id = ? AND storage = ?
  ORDER BY state IN ('live', 'dormant', 'unsettled') DESC, no DESC LIMIT 1`;
const SESSIONS_BY_ID = `${SESSION} WHERE s.owner = ? AND s.id = ? AND c.owner = s.owner ORDER BY s.used_at DESC, s.no DESC`;
const PERMISSION_BY_ID = `${PERMISSION} WHERE p.id = ? AND c.owner = ?`;
const PERMISSIONS = `${PERMISSION} WHERE p.owner = ? AND c.owner = p.owner AND p.no > ? ORDER BY p.no`;
const OPEN_PERMISSIONS = `${PERMISSION} WHERE p.owner = ? AND p.state = 'open' AND p.no > ? ORDER BY p.no`;
const PERMISSIONS_OF_TURN = `${PERMISSION} WHERE p.turn = ? AND p.no > ? ORDER BY p.no`;
const PERMISSIONS_OF_CONVERSATION = `${PERMISSION} WHERE p.conv = ? AND p.no > ? ORDER BY p.no`;

interface Range {
  readonly after: number;
  readonly limit: number;
}

export function events(
  db: Database,
  owner: string,
  id: string,
  { after, limit, bytes }: Range & Pick<Bounds, 'bytes'>,
): ConversationEvent[] {
  const rows = db.each<EventRow>(EVENTS, id, owner, after, Math.max(0, limit));
  const page = pageOf(rows, (row) => eventOf(id, row), { bytes });
  if (page.length === 0) conversationNo(db, owner, id); // throws if the conversation does not exist
  return page;
}

export function eventsBefore(
  db: Database,
  owner: string,
  id: string,
  { before, limit, turn }: Parameters<HistoryStore['eventsBefore']>[2],
): ConversationEvent[] {
  const most = Math.max(0, limit);
  const rows =
    turn === undefined
      ? db.each<EventRow>(EVENTS_BEFORE, id, owner, before, most)
      : db.each<EventRow>(TURN_EVENTS_BEFORE, turnNo(db, owner, id, turn), before, most);
  const page = pageOf(rows, (row) => eventOf(id, row)).reverse();
  if (page.length === 0) conversationNo(db, owner, id); // throws if the conversation does not exist
  return page;
}

function turnNo(db: Database, owner: string, id: string, n: number): number {
  const row = db.one<{ no: number }>(TURN_NO, conversationNo(db, owner, id), n);
  if (row === undefined) throw noSuchTurn(String(n));
  return row.no;
}

export function turnEvents(
  db: Database,
  owner: string,
  id: string,
  { after = 0, limit }: Partial<Range> = {},
): ConversationEvent[] {
  const turn = turnRow(db, owner, id);
  const rows = db.each<EventRow>(TURN_EVENTS, turn.no, after);
  return pageOf(rows, (row) => eventOf(turn.conversation, row), { limit });
}

export function findTurn(db: Database, owner: string, id: string): Turn | null {
  const row = db.one<TurnRow>(TURN_BY_ID, id, owner);
  return row === undefined ? null : turnOf(db, row);
}

export function findRequest(db: Database, owner: string, requestId: string): Turn | null {
  if (!requestId.isWellFormed()) return null;
  const row = db.one<TurnRow>(TURN_BY_REQUEST, owner, requestId);
  return row === undefined ? null : turnOf(db, row);
}

export function turns(db: Database, owner: string, id: string, range: CheckedRange): Turn[] {
  const no = conversationNo(db, owner, id);
  const most = Math.max(0, range.limit);
  const read = (row: TurnRow) => turnOf(db, row);
  if ('after' in range) return pageOf(db.each<TurnRow>(TURNS, no, range.after, most), read);
  return pageOf(db.each<TurnRow>(TURNS_BEFORE, no, range.before, most), read).reverse();
}

export function outline(db: Database, owner: string, id: string, range: CheckedRange): TurnOutline[] {
  const no = conversationNo(db, owner, id);
  const most = Math.max(0, range.limit);
  if ('after' in range) return pageOf(db.each<OutlineRow>(OUTLINE, no, range.after, most), outlineOf);
  return pageOf(db.each<OutlineRow>(OUTLINE_BEFORE, no, range.before, most), outlineOf).reverse();
}

export function queued(db: Database, owner: string, id: string, { after, limit }: Range): Turn[] {
  const no = conversationNo(db, owner, id);
  return pageOf(db.each<TurnRow>(QUEUED, no, after, Math.max(0, limit)), (row) => turnOf(db, row));
}

export function pending(
  db: Database,
  owner: string,
  { after, limit }: Parameters<TurnStore['pending']>[1],
): PendingTurn[] {
  const last = after === undefined ? 0 : turnRow(db, owner, after).no;
  const rows = db.each<TurnRow>(PENDING, owner, last, Math.max(0, limit));
  return pageOf(rows, (row) => ({ turn: turnOf(db, row), seq: row.queued_seq }));
}

export function recordsBefore(
  db: Database,
  owner: string,
  id: string,
  page: { upTo: number; limit: number },
): TurnRecord[] {
  const no = conversationNo(db, owner, id);
  const rows = db.each<RecordRow>(RECORDS_BEFORE, no, page.upTo, Math.max(0, page.limit));
  return pageOf(rows, (row) => recordOf(db, row));
}

export function recordsAfter(db: Database, owner: string, id: string, { after, limit }: Range): TurnRecord[] {
  const no = conversationNo(db, owner, id);
  return pageOf(db.each<RecordRow>(RECORDS_AFTER, no, after, Math.max(0, limit)), (row) => recordOf(db, row));
}

/** Every record has its place in the history, so this is a subtraction. */
export function countRecordsAfter(db: Database, owner: string, id: string, after: number): number {
  const { no, historyCount } = conversationRow(db, owner, id);
  return historyCount - (db.one<{ place: number }>(PLACE, no, after)?.place ?? 0);
}

export function unknownParts(db: Database, owner: string, id: string): UnknownPart[] {
  return unknownPartsOf(db, conversationNo(db, owner, id));
}

export function unknownPartsOf(db: Database, conv: number): UnknownPart[] {
  return db.all<UnknownPart>(UNKNOWN_PARTS, conv);
}

/** The last session of the page before. */
export type LastSession = Pick<SessionRow, 'used_seq' | 'no'>;

export interface SessionPage {
  readonly sessions: Session[];
  /** Null: there was none. */
  readonly last: LastSession | null;
}

/** Most recently used first. */
export function sessions(
  db: Database,
  owner: string,
  id: string,
  { agent, limit, before }: { agent?: string; limit: number; before: LastSession | null },
): SessionPage {
  const { used_seq, no } = before ?? { used_seq: Number.MAX_SAFE_INTEGER, no: 0 };
  const place = [used_seq, no, Math.max(0, limit)] as const;
  const rows =
    agent === undefined
      ? db.all<SessionRow>(SESSIONS, id, owner, ...place)
      : db.all<SessionRow>(SESSIONS_OF_AGENT, id, owner, agent, ...place);
  if (rows.length === 0) conversationNo(db, owner, id);
  return { sessions: rows.map(sessionOf), last: rows.at(-1) ?? null };
}

export function sessionIsElsewhere(db: Database, owner: string, id: string, native: NativeSession): boolean {
  const conv = conversationNo(db, owner, id);
  const home = db.one<{ conv: number }>(SESSION_HOME, native.id, native.storage);
  return home !== undefined && home.conv !== conv;
}

export function findSessions(db: Database, owner: string, id: string): Session[] {
  return id.isWellFormed() ? db.all<SessionRow>(SESSIONS_BY_ID, owner, id).map(sessionOf) : [];
}

type PermissionFilter = Parameters<PermissionStore['permissions']>[1];

export function permissions(
  db: Database,
  owner: string,
  filter: PermissionFilter,
  { after, limit }: { after?: string; limit?: number } = {},
): Permission[] {
  const last = after === undefined ? 0 : permissionNo(db, owner, after);
  const rows = wanted(permissionRows(db, owner, filter, last), filter);
  return pageOf(readable(db, rows, permissionOf), (one) => one, { limit });
}

function permissionNo(db: Database, owner: string, id: string): number {
  const row = db.one<PermissionRow>(PERMISSION_BY_ID, id, owner);
  if (row === undefined) throw noSuchPermission(id);
  return row.no;
}

/** Uses the narrowest index; `wanted` filters the rest. */
function permissionRows(
  db: Database,
  owner: string,
  { conversation, turn, open }: PermissionFilter,
  last: number,
): Iterable<PermissionRow> {
  if (turn !== undefined) return db.each(PERMISSIONS_OF_TURN, turnRow(db, owner, turn).no, last);
  if (open === true) return db.each(OPEN_PERMISSIONS, owner, last);
  if (conversation === undefined) return db.each(PERMISSIONS, owner, last);
  return db.each(PERMISSIONS_OF_CONVERSATION, conversationNo(db, owner, conversation), last);
}

function* wanted(rows: Iterable<PermissionRow>, { conversation, open }: PermissionFilter): Generator<PermissionRow> {
  for (const row of rows) {
    const isThere = conversation === undefined || row.conversation === conversation;
    if (isThere && (open === undefined || (row.state === 'open') === open)) yield row;
  }
}

export function findPermission(db: Database, owner: string, id: string): Permission | null {
  const row = db.one<PermissionRow>(PERMISSION_BY_ID, id, owner);
  return row === undefined ? null : permissionOf(row);
}

function turnRow(db: Database, owner: string, id: string): TurnRow {
  const row = db.one<TurnRow>(TURN_BY_ID, id, owner);
  if (row === undefined) throw new ThroughlineError('not_found', 'There is no such turn.');
  return row;
}
