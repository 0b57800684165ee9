import type { ConversationEvent } from '../../../core/event.ts';
import type { Session } from '../../../core/restore/session.ts';
import type { Permission } from '../../../core/turn/permission.ts';
import type { HistoryStore } from '../../../ports/store/history.ts';
import type { PermissionStore } from '../../../ports/store/permissions.ts';
import { type Bounds, LARGEST_PAGE, pageOf } from '../../shared/page.ts';
import {
  EVENT,
  type EventRow,
  eventOf,
  PERMISSION,
  type PermissionRow,
  permissionOf,
  SESSION,
  type SessionRow,
  sessionOf,
} from '../../shared/rows.ts';
import { conversationNo, permissionRow, turnNo, turnRow } from '../../shared/verbs/reading.ts';
import { unindexed } from '../../shared/verbs/steps.ts';
import { pageOfReadable } from '../conversations/content.ts';
import type { Sql } from '../server/connect.ts';
import { carryOut } from '../steps.ts';

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
const TURN_EVENTS_BEFORE = `${EVENT} WHERE e.turn = $1 AND e.seq < $2 ORDER BY e.seq DESC LIMIT $3`;
const SESSIONS = `
  ${SESSION} WHERE s.conv = $1 AND s.agent = coalesce($2, s.agent) ORDER BY s.used_seq DESC, s.no DESC LIMIT $3`;
const PERMISSIONS = `
  ${PERMISSION} WHERE p.owner = $1 AND c.owner = p.owner AND p.no > $2 AND ($3::text IS NULL OR c.id = $3)
    AND ($4::bigint IS NULL OR p.turn = $4) AND ($5::int IS NULL OR (p.state = 'open') = ($5 = 1))
    AND ($6::bigint IS NULL OR t.n BETWEEN $6 AND $7)
  ORDER BY p.no LIMIT $8`;

export async function events(
  sql: Sql,
  owner: string,
  id: string,
  { after, limit, bytes }: { after: number; limit: number } & Pick<Bounds, 'bytes'>,
): Promise<ConversationEvent[]> {
  const rows = await sql.all<EventRow>(EVENTS, id, owner, after, Math.max(0, limit), bytes ?? LARGEST_PAGE);
  if (rows.length === 0) await carryOut(sql, conversationNo(owner, id)); // throws if the conversation does not exist
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
      : await sql.all<EventRow>(TURN_EVENTS_BEFORE, await carryOut(sql, turnNo(owner, id, turn)), before, most);
  if (rows.length === 0) await carryOut(sql, conversationNo(owner, id)); // throws if the conversation does not exist
  return pageOf(rows, (row) => eventOf(id, row)).reverse();
}

/** Most recently used first. */
export async function sessions(
  sql: Sql,
  owner: string,
  id: string,
  { agent, limit }: { agent?: string; limit?: number } = {},
): Promise<Session[]> {
  const no = await carryOut(sql, conversationNo(owner, id));
  const most = limit === undefined || !Number.isFinite(limit) ? null : Math.max(0, limit);
  return (await sessionRows(sql, no, agent ?? null, most)).map(sessionOf);
}

export function sessionRows(sql: Sql, conv: number, agent: string | null, most: number | null): Promise<SessionRow[]> {
  return sql.all<SessionRow>(SESSIONS, conv, agent, most);
}

export async function permissions(
  sql: Sql,
  owner: string,
  { conversation, turn, turns, open }: Parameters<PermissionStore['permissions']>[1],
  { after, limit }: { after?: string; limit?: number } = {},
): Promise<Permission[]> {
  const last = after === undefined ? 0 : (await carryOut(sql, permissionRow(owner, after))).no;
  if (turn === undefined && open !== true && conversation !== undefined)
    await carryOut(sql, conversationNo(owner, conversation));
  const of = turn === undefined ? null : (await carryOut(sql, turnRow(owner, turn))).no;
  const state = open === undefined ? null : Number(open);
  const span = [turns?.from ?? null, turns?.to ?? null];
  const most = limit === undefined ? null : Math.max(0, limit);
  const fetch = ({ no }: Pick<PermissionRow, 'no'> = { no: last }) =>
    sql.all<PermissionRow>(PERMISSIONS, owner, no, conversation ?? null, of, state, ...span, most);
  return pageOfReadable(sql, most ?? Number.POSITIVE_INFINITY, fetch, permissionOf);
}
