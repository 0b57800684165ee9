import { noSuchPermission, noSuchTurn, ThroughlineError } from '../../../core/errors.ts';
import type { ConversationEvent } from '../../../core/event.ts';
import type { CheckedRange } from '../../../core/input/arguments.ts';
import type { TurnOutline } from '../../../core/public/turn.ts';
import type { UnknownPart } from '../../../core/restore/adopted.ts';
import type { Session } from '../../../core/restore/session.ts';
import type { Permission } from '../../../core/turn/permission.ts';
import type { TurnRecord } from '../../../core/turn/record.ts';
import type { Sent, Turn } from '../../../core/turn/turn.ts';
import type { HistoryStore } from '../../../ports/store/history.ts';
import type { PermissionStore } from '../../../ports/store/permissions.ts';
import type { NativeSession } from '../../../ports/store/sessions.ts';
import type { PendingTurn, TurnStore } from '../../../ports/store/turns.ts';
import { type Bounds, LARGEST_PAGE, pageOf } from '../../shared/page.ts';
import {
  EVENT,
  type EventRow,
  eventOf,
  type OutlineRow,
  outlineOf,
  PERMISSION,
  type PermissionRow,
  parsed,
  permissionOf,
  RECORD,
  type RecordRow,
  SESSION,
  type SessionRow,
  sessionOf,
  TURN,
  type TurnRow,
} from '../../shared/rows.ts';
import { pageOfRead, pageOfReadable, readRecord, readTurn } from '../conversations/content.ts';
import { conversationNo, conversationRow, isName } from '../conversations/conversations.ts';
import { unindexed } from '../plans.ts';
import type { Sql } from '../server/connect.ts';

const CONVERSATION_NO = `(SELECT no FROM conversations WHERE id = $1 AND ${unindexed('owner')} = $2)`;
/** Of the rows of a page, those before its size is reached: the others are not sent. Sizes are known without reading the payloads. */
const within = (rows: string, order: string) => `
  SELECT seq, kind, at, payload, turn FROM (
    SELECT p.*, sum(octet_length(p.payload)) OVER (ORDER BY p.seq ${order}) - octet_length(p.payload) AS before FROM (${rows}) p
  ) sized WHERE before IS NULL OR before < $5 ORDER BY seq ${order}`;
const EVENTS = within(`${EVENT} WHERE e.conv = ${CONVERSATION_NO} AND e.seq > $3 ORDER BY e.seq LIMIT $4`, 'ASC');
const EVENTS_BEFORE = within(
  `${EVENT} WHERE e.conv = ${CONVERSATION_NO} AND e.seq < $3 ORDER BY e.seq DESC LIMIT $4`,
  'DESC',
);
const TURN_NO = 'SELECT no FROM turns WHERE conv = $1 AND n = $2';
const TURN_EVENTS_BEFORE = `${EVENT} WHERE e.turn = $1 AND e.seq < $2 ORDER BY e.seq DESC LIMIT $3`;
const TURN_EVENTS = `${EVENT} WHERE e.turn = $1 AND e.seq > $2 ORDER BY e.seq LIMIT $3`;
const TURN_BY_ID = `${TURN} WHERE t.id = $1 AND ${unindexed('t.owner')} = $2`;
const TURN_BY_REQUEST = `${TURN} WHERE t.owner = $1 AND t.request_id = $2 AND ${unindexed('c.owner')} = t.owner`;
const TURNS = `${TURN} WHERE t.conv = $1 AND t.n > $2 ORDER BY t.n LIMIT $3`;
const TURNS_BEFORE = `${TURN} WHERE t.conv = $1 AND t.n < $2 ORDER BY t.n DESC LIMIT $3`;
const TURN_OUTLINE = `
  SELECT id, n, state, agent, session_id AS "sessionId", sent, imported, usage,
    started_at AS "startedAt", ended_at AS "endedAt"
  FROM turns`;
const OUTLINE = `${TURN_OUTLINE} WHERE conv = $1 AND n > $2 ORDER BY n LIMIT $3`;
const OUTLINE_BEFORE = `${TURN_OUTLINE} WHERE conv = $1 AND n < $2 ORDER BY n DESC LIMIT $3`;
const QUEUED = TURNS.replace('ORDER BY', "AND t.ended_at IS NULL AND t.state = 'queued' ORDER BY");
const PENDING = `${TURN} WHERE t.owner = $1 AND t.delivered = 0 AND t.no > $2 AND ${unindexed('c.owner')} = t.owner ORDER BY t.no LIMIT $3`;
const RECORDS_BEFORE = `${RECORD} WHERE r.conv = $1 AND r.n <= $2 ORDER BY r.n DESC LIMIT $3`;
const RECORDS_AFTER = `${RECORD} WHERE r.conv = $1 AND r.n > $2 ORDER BY r.n LIMIT $3`;
const PLACE = 'SELECT place FROM records WHERE conv = $1 AND n <= $2 ORDER BY n DESC LIMIT 1';
const UNKNOWN_PARTS = `
  SELECT r.n, t.agent, t.session_id AS "sessionId" FROM records r JOIN turns t ON t.no = r.turn
  WHERE r.conv = $1 AND r.unknown_before = 1 ORDER BY r.n`;
const SESSIONS = `
  ${SESSION} WHERE s.conv = $1 AND s.agent = coalesce($2, s.agent) ORDER BY s.used_seq DESC, s.no DESC LIMIT $3`;
// The conversation that can use it, else the last that had it.
const SESSION_HOME = `
  SELECT conv FROM sessions WHERE id = $1 AND storage = $2
  ORDER BY (state IN ('live', 'dormant', 'unsettled')) DESC, no DESC LIMIT 1`;
const SESSIONS_BY_ID = `
  ${SESSION} WHERE ${unindexed('s.owner')} = $1 AND s.id = $2 AND ${unindexed('c.owner')} = s.owner ORDER BY s.used_at DESC, s.no DESC`;
const PERMISSION_BY_ID = `${PERMISSION} WHERE p.id = $1 AND ${unindexed('p.owner')} = $2`;
const PERMISSIONS = `
  ${PERMISSION} WHERE p.owner = $1 AND c.owner = p.owner AND p.no > $2 AND ($3::text IS NULL OR c.id = $3)
    AND ($4::bigint IS NULL OR p.turn = $4) AND ($5::int IS NULL OR (p.state = 'open') = ($5 = 1))
  ORDER BY p.no LIMIT $6`;

type SentRow = Omit<OutlineRow, 'rung'> & { readonly sent: string | null };

interface Range {
  readonly after: number;
  readonly limit: number;
}

export async function events(
  sql: Sql,
  owner: string,
  id: string,
  { after, limit, bytes }: Range & Pick<Bounds, 'bytes'>,
): Promise<ConversationEvent[]> {
  const rows = await sql.all<EventRow>(EVENTS, id, owner, after, Math.max(0, limit), bytes ?? LARGEST_PAGE);
  if (rows.length === 0) await conversationNo(sql, owner, id); // throws if the conversation does not exist
  return pageOf(rows, (row) => eventOf(id, row), { bytes });
}

export async function eventsBefore(
  sql: Sql,
  owner: string,
  id: string,
  { before, limit, turn }: Parameters<HistoryStore['eventsBefore']>[2],
): Promise<ConversationEvent[]> {
  const most = Math.max(0, limit);
  const rows =
    turn === undefined
      ? await sql.all<EventRow>(EVENTS_BEFORE, id, owner, before, most, LARGEST_PAGE)
      : await sql.all<EventRow>(TURN_EVENTS_BEFORE, await turnNo(sql, owner, id, turn), before, most);
  if (rows.length === 0) await conversationNo(sql, owner, id); // throws if the conversation does not exist
  return pageOf(rows, (row) => eventOf(id, row)).reverse();
}

async function turnNo(sql: Sql, owner: string, id: string, n: number): Promise<number> {
  const row = await sql.one<{ no: number }>(TURN_NO, await conversationNo(sql, owner, id), n);
  if (row === undefined) throw noSuchTurn(String(n));
  return row.no;
}

export async function turnEvents(
  sql: Sql,
  owner: string,
  id: string,
  { after = 0, limit }: Partial<Range> = {},
): Promise<ConversationEvent[]> {
  const turn = await turnRow(sql, owner, id);
  const rows = await sql.all<EventRow>(TURN_EVENTS, turn.no, after, limit === undefined ? null : Math.max(0, limit));
  return pageOf(rows, (row) => eventOf(turn.conversation, row), { limit });
}

export async function findTurn(sql: Sql, owner: string, id: string): Promise<Turn | null> {
  const row = await sql.one<TurnRow>(TURN_BY_ID, id, owner);
  return row === undefined ? null : readTurn(sql, row);
}

export async function findRequest(sql: Sql, owner: string, requestId: string): Promise<Turn | null> {
  if (!isName(requestId)) return null;
  const row = await sql.one<TurnRow>(TURN_BY_REQUEST, owner, requestId);
  return row === undefined ? null : readTurn(sql, row);
}

export async function turns(sql: Sql, owner: string, id: string, range: CheckedRange): Promise<Turn[]> {
  const no = await conversationNo(sql, owner, id);
  const [text, from] = 'after' in range ? [TURNS, range.after] : [TURNS_BEFORE, range.before];
  const rows = await sql.all<TurnRow>(text, no, from, Math.max(0, range.limit));
  const page = await pageOfRead(rows, (row) => readTurn(sql, row));
  return 'after' in range ? page : page.reverse();
}

export async function outline(sql: Sql, owner: string, id: string, range: CheckedRange): Promise<TurnOutline[]> {
  const no = await conversationNo(sql, owner, id);
  const [text, from] = 'after' in range ? [OUTLINE, range.after] : [OUTLINE_BEFORE, range.before];
  const rows = await sql.all<SentRow>(text, no, from, Math.max(0, range.limit));
  // PostgreSQL refuses to read a field of JSON with a NUL anywhere in it.
  const page = pageOf(rows, ({ sent, ...row }) => outlineOf({ ...row, rung: parsed<Sent>(sent)?.rung ?? null }));
  return 'after' in range ? page : page.reverse();
}

export async function queued(sql: Sql, owner: string, id: string, { after, limit }: Range): Promise<Turn[]> {
  const rows = await sql.all<TurnRow>(QUEUED, await conversationNo(sql, owner, id), after, Math.max(0, limit));
  return pageOfRead(rows, (row) => readTurn(sql, row));
}

export async function pending(
  sql: Sql,
  owner: string,
  { after, limit }: Parameters<TurnStore['pending']>[1],
): Promise<PendingTurn[]> {
  const last = after === undefined ? 0 : (await turnRow(sql, owner, after)).no;
  const rows = await sql.all<TurnRow>(PENDING, owner, last, Math.max(0, limit));
  return pageOfRead(rows, async (row) => ({ turn: await readTurn(sql, row), seq: row.queued_seq }));
}

export async function recordsBefore(
  sql: Sql,
  owner: string,
  id: string,
  page: { upTo: number; limit: number },
): Promise<TurnRecord[]> {
  const no = await conversationNo(sql, owner, id);
  const rows = await sql.all<RecordRow>(RECORDS_BEFORE, no, page.upTo, Math.max(0, page.limit));
  return pageOfRead(rows, (row) => readRecord(sql, row));
}

export async function recordsAfter(
  sql: Sql,
  owner: string,
  id: string,
  { after, limit }: Range,
): Promise<TurnRecord[]> {
  const rows = await sql.all<RecordRow>(RECORDS_AFTER, await conversationNo(sql, owner, id), after, Math.max(0, limit));
  return pageOfRead(rows, (row) => readRecord(sql, row));
}

/** Every record has its place in the history, so this is a subtraction. */
export async function countRecordsAfter(sql: Sql, owner: string, id: string, after: number): Promise<number> {
  const { no, historyCount } = await conversationRow(sql, owner, id);
  return historyCount - ((await sql.one<{ place: number }>(PLACE, no, after))?.place ?? 0);
}

export async function unknownParts(sql: Sql, owner: string, id: string): Promise<UnknownPart[]> {
  return unknownPartsOf(sql, await conversationNo(sql, owner, id));
}

export function unknownPartsOf(sql: Sql, conv: number): Promise<UnknownPart[]> {
  return sql.all<UnknownPart>(UNKNOWN_PARTS, conv);
}

/** Most recently used first. */
export async function sessions(
  sql: Sql,
  owner: string,
  id: string,
  { agent, limit }: { agent?: string; limit?: number } = {},
): Promise<Session[]> {
  const no = await conversationNo(sql, owner, id);
  const most = limit === undefined || !Number.isFinite(limit) ? null : Math.max(0, limit);
  return (await sessionRows(sql, no, agent ?? null, most)).map(sessionOf);
}

export function sessionRows(sql: Sql, conv: number, agent: string | null, most: number | null): Promise<SessionRow[]> {
  return sql.all<SessionRow>(SESSIONS, conv, agent, most);
}

export async function sessionIsElsewhere(sql: Sql, owner: string, id: string, native: NativeSession): Promise<boolean> {
  const conv = await conversationNo(sql, owner, id);
  const home = await sql.one<{ conv: number }>(SESSION_HOME, native.id, native.storage);
  return home !== undefined && home.conv !== conv;
}

export async function findSessions(sql: Sql, owner: string, id: string): Promise<Session[]> {
  return isName(id) ? (await sql.all<SessionRow>(SESSIONS_BY_ID, owner, id)).map(sessionOf) : [];
}

export async function permissions(
  sql: Sql,
  owner: string,
  { conversation, turn, open }: Parameters<PermissionStore['permissions']>[1],
  { after, limit }: { after?: string; limit?: number } = {},
): Promise<Permission[]> {
  const last = after === undefined ? 0 : await permissionNo(sql, owner, after);
  if (turn === undefined && open !== true && conversation !== undefined) await conversationNo(sql, owner, conversation);
  const of = turn === undefined ? null : (await turnRow(sql, owner, turn)).no;
  const state = open === undefined ? null : Number(open);
  const most = limit === undefined ? null : Math.max(0, limit);
  const fetch = ({ no }: Pick<PermissionRow, 'no'> = { no: last }) =>
    sql.all<PermissionRow>(PERMISSIONS, owner, no, conversation ?? null, of, state, most);
  return pageOfReadable(sql, most ?? Number.POSITIVE_INFINITY, fetch, permissionOf);
}

async function permissionNo(sql: Sql, owner: string, id: string): Promise<number> {
  const row = await sql.one<PermissionRow>(PERMISSION_BY_ID, id, owner);
  if (row === undefined) throw noSuchPermission(id);
  return row.no;
}

export async function findPermission(sql: Sql, owner: string, id: string): Promise<Permission | null> {
  const row = await sql.one<PermissionRow>(PERMISSION_BY_ID, id, owner);
  return row === undefined ? null : permissionOf(row);
}

async function turnRow(sql: Sql, owner: string, id: string): Promise<TurnRow> {
  const row = await sql.one<TurnRow>(TURN_BY_ID, id, owner);
  if (row === undefined) throw new ThroughlineError('not_found', 'There is no such turn.');
  return row;
}
