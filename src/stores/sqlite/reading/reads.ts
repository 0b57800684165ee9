import type { ConversationEvent } from '../../../core/event.ts';
import type { Session } from '../../../core/restore/session.ts';
import type { Permission } from '../../../core/turn/permission.ts';
import type { HistoryStore } from '../../../ports/store/history.ts';
import type { PermissionStore } from '../../../ports/store/permissions.ts';
import { type Bounds, pageOf, readable } from '../../shared/page.ts';
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
import { LIMIT } from '../../shared/verbs/steps.ts';
import type { Database } from '../file/database.ts';
import { carryOut } from '../steps.ts';

// One statement and not two: followers read after every commit, and starting a read costs more than the lookup.
const CONVERSATION_NO = '(SELECT no FROM conversations WHERE id = ? AND owner = ?)';
const EVENTS = `${EVENT} WHERE e.conv = ${CONVERSATION_NO} AND e.seq > ? ORDER BY e.seq ${LIMIT}`;
const EVENTS_BEFORE = `${EVENT} WHERE e.conv = ${CONVERSATION_NO} AND e.seq < ? ORDER BY e.seq DESC ${LIMIT}`;
const TURN_EVENTS_BEFORE = `${EVENT} WHERE e.turn = ? AND e.seq < ? ORDER BY e.seq DESC ${LIMIT}`;
const BEFORE = `AND (s.used_seq, s.no) < (?, ?) ORDER BY s.used_seq DESC, s.no DESC ${LIMIT}`;
const SESSIONS = `${SESSION} WHERE s.conv = ${CONVERSATION_NO} ${BEFORE}`;
const SESSIONS_OF_AGENT = `${SESSION} WHERE s.conv = ${CONVERSATION_NO} AND s.agent = ? ${BEFORE}`;
const PERMISSIONS = `${PERMISSION} WHERE p.owner = ? AND c.owner = p.owner AND p.no > ? ORDER BY p.no`;
const OPEN_PERMISSIONS = `${PERMISSION} WHERE p.owner = ? AND p.state = 'open' AND p.no > ? ORDER BY p.no`;
const PERMISSIONS_OF_TURN = `${PERMISSION} WHERE p.turn = ? AND p.no > ? ORDER BY p.no`;
const PERMISSIONS_OF_CONVERSATION = `${PERMISSION} WHERE p.conv = ? AND p.no > ? ORDER BY p.no`;
const PERMISSIONS_OF_TURNS = `${PERMISSION} WHERE t.conv = ? AND t.n BETWEEN ? AND ? AND p.no > ? ORDER BY p.no`;

export function events(
  db: Database,
  owner: string,
  id: string,
  { after, limit, bytes }: { after: number; limit: number } & Pick<Bounds, 'bytes'>,
): ConversationEvent[] {
  const rows = db.each<EventRow>(EVENTS, id, owner, after, Math.max(0, limit));
  const page = pageOf(rows, (row) => eventOf(id, row), { bytes });
  if (page.length === 0) carryOut(db, conversationNo(owner, id)); // throws if the conversation does not exist
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
      : db.each<EventRow>(TURN_EVENTS_BEFORE, carryOut(db, turnNo(owner, id, turn)), before, most);
  const page = pageOf(rows, (row) => eventOf(id, row)).reverse();
  if (page.length === 0) carryOut(db, conversationNo(owner, id)); // throws if the conversation does not exist
  return page;
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
  if (rows.length === 0) carryOut(db, conversationNo(owner, id));
  return { sessions: rows.map(sessionOf), last: rows.at(-1) ?? null };
}

type PermissionFilter = Parameters<PermissionStore['permissions']>[1];

export function permissions(
  db: Database,
  owner: string,
  filter: PermissionFilter,
  { after, limit }: { after?: string; limit?: number } = {},
): Permission[] {
  const last = after === undefined ? 0 : carryOut(db, permissionRow(owner, after)).no;
  const rows = wanted(permissionRows(db, owner, filter, last), filter);
  return pageOf(readable(db, rows, permissionOf), (one) => one, { limit });
}

/** Uses the narrowest index; `wanted` filters the rest. */
function permissionRows(
  db: Database,
  owner: string,
  { conversation, turn, turns, open }: PermissionFilter,
  last: number,
): Iterable<PermissionRow> {
  if (turn !== undefined) return db.each(PERMISSIONS_OF_TURN, carryOut(db, turnRow(owner, turn)).no, last);
  if (turns !== undefined && conversation !== undefined) {
    const no = carryOut(db, conversationNo(owner, conversation));
    return db.each(PERMISSIONS_OF_TURNS, no, turns.from, turns.to, last);
  }
  if (open === true) return db.each(OPEN_PERMISSIONS, owner, last);
  if (conversation === undefined) return db.each(PERMISSIONS, owner, last);
  return db.each(PERMISSIONS_OF_CONVERSATION, carryOut(db, conversationNo(owner, conversation)), last);
}

function* wanted(rows: Iterable<PermissionRow>, { conversation, open }: PermissionFilter): Generator<PermissionRow> {
  for (const row of rows) {
    const isThere = conversation === undefined || row.conversation === conversation;
    if (isThere && (open === undefined || (row.state === 'open') === open)) yield row;
  }
}
