// From rows to values: for each table a SELECT, the type of its row, and the value made from it.
import type { Conversation, Driver, TitleSource } from '../../../core/conversation.ts';
import type { ConversationEvent } from '../../../core/event.ts';
import type { Session, SessionOrigin, SessionState } from '../../../core/restore/session.ts';
import type { Permission, PermissionState } from '../../../core/turn/permission.ts';
import type { TurnRecord } from '../../../core/turn/record.ts';
import type { Turn, TurnState } from '../../../core/turn/turn.ts';
import type { Database } from '../file/database.ts';
import { readValue } from './content.ts';

export const CONVERSATION = `
  SELECT c.*, l.head, l.history, l.next_seq FROM conversations c JOIN leases l ON l.conv = c.no`;

export interface ConversationRow {
  no: number;
  owner: string;
  id: string;
  key: string | null;
  title: string;
  title_source: TitleSource;
  agent: string | null;
  driver: Driver;
  sandbox: string;
  cwd: string | null;
  place: string;
  restore: string;
  parent: string | null;
  created_at: number;
  updated_at: number;
  head: number;
  history: number;
  next_seq: number;
}

export function conversationOf(row: ConversationRow): Conversation {
  return {
    id: row.id,
    owner: row.owner,
    key: row.key,
    title: row.title,
    titleSource: row.title_source,
    agent: row.agent,
    driver: row.driver,
    sandbox: row.sandbox,
    cwd: row.cwd,
    place: row.place,
    restore: JSON.parse(row.restore),
    parent: row.parent === null ? null : JSON.parse(row.parent),
    head: row.head,
    historyCount: row.history,
    lastSeq: row.next_seq - 1,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

export const TURN = 'SELECT t.*, c.id AS conversation FROM turns t JOIN conversations c ON c.no = t.conv';

export interface TurnRow {
  no: number;
  owner: string;
  conv: number;
  conversation: string;
  n: number;
  id: string;
  request_id: string | null;
  request_hash: Uint8Array | null;
  queued_seq: number;
  state: TurnState;
  agent: string;
  prompt: string;
  prompt_refs: number;
  options: string;
  attempt: number;
  session_id: string | null;
  retry_of: string | null;
  sent: string | null;
  was_sent: number;
  cancel_requested: number;
  failure: string | null;
  usage: string;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
}

export function turnOf(db: Database, row: TurnRow): Turn {
  return {
    id: row.id,
    conversation: row.conversation,
    n: row.n,
    requestId: row.request_id,
    state: row.state,
    agent: row.agent,
    prompt: readValue(db, row.owner, row.prompt, row.prompt_refs),
    options: JSON.parse(row.options),
    attempt: row.attempt,
    sessionId: row.session_id,
    retryOf: row.retry_of,
    sent: row.sent === null ? null : JSON.parse(row.sent),
    cancelRequested: row.cancel_requested === 1,
    failure: row.failure === null ? null : JSON.parse(row.failure),
    usage: JSON.parse(row.usage),
    createdAt: row.created_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
  };
}

export const RECORD = `
  SELECT r.turn, r.owner, r.n, r.body, r.body_refs, t.prompt, t.prompt_refs FROM records r JOIN turns t ON t.no = r.turn`;

export interface RecordRow {
  turn: number;
  owner: string;
  n: number;
  body: string;
  body_refs: number;
  prompt: string;
  prompt_refs: number;
}

/** Has a prompt only if it differs from the turn's: a tracker may give it later. */
export type RecordBody = Omit<TurnRecord, 'prompt'> & Partial<Pick<TurnRecord, 'prompt'>>;

/** Fields in a fixed order: the hash of a fork is made from the JSON of its records. */
export function recordOf(db: Database, row: RecordRow): TurnRecord {
  const { version, n, agent, sessionId, outcome, ...rest } = readValue<RecordBody>(
    db,
    row.owner,
    row.body,
    row.body_refs,
  );
  return {
    version,
    n,
    agent,
    sessionId,
    outcome,
    prompt: rest.prompt ?? readValue(db, row.owner, row.prompt, row.prompt_refs),
    parts: rest.parts,
    failure: rest.failure,
    usage: rest.usage,
    startedAt: rest.startedAt,
    endedAt: rest.endedAt,
  };
}

export const EVENT =
  'SELECT e.seq, e.kind, e.at, e.payload, t.id AS turn FROM events e LEFT JOIN turns t ON t.no = e.turn';

export interface EventRow {
  seq: number;
  kind: string;
  at: number;
  payload: string | null;
  turn: string | null;
}

export function eventOf(conversation: string, row: EventRow): ConversationEvent {
  const payload: unknown = row.payload === null ? {} : JSON.parse(row.payload);
  return { conversation, seq: row.seq, kind: row.kind, turn: row.turn, at: row.at, payload } as ConversationEvent;
}

export const SESSION = 'SELECT s.*, c.id AS conversation FROM sessions s JOIN conversations c ON c.no = s.conv';

export interface SessionRow {
  no: number;
  conv: number;
  conversation: string;
  ref: string;
  id: string;
  agent: string;
  origin: SessionOrigin;
  parent: string | null;
  watermark: number;
  dropped: number;
  state: SessionState;
  position: string | null;
  process: string | null;
  mirrored: number;
  memo: string | null;
  turns: number;
  usage: string;
  opened_at: number;
  used_at: number;
}

export function sessionOf(row: SessionRow): Session {
  return {
    ref: row.ref,
    id: row.id,
    conversation: row.conversation,
    agent: row.agent,
    origin: row.origin,
    parent: row.parent,
    watermark: row.watermark,
    dropped: row.dropped,
    state: row.state,
    position: row.position,
    process: row.process === null ? null : JSON.parse(row.process),
    mirrored: row.mirrored,
    memo: row.memo,
    turns: row.turns,
    usage: JSON.parse(row.usage),
    openedAt: row.opened_at,
    usedAt: row.used_at,
  };
}

export const PERMISSION = `
  SELECT p.*, c.id AS conversation, t.id AS turn_id
  FROM permissions p JOIN conversations c ON c.no = p.conv JOIN turns t ON t.no = p.turn`;

export interface PermissionRow {
  no: number;
  conv: number;
  turn: number;
  conversation: string;
  turn_id: string;
  id: string;
  attempt: number;
  title: string;
  tool_call: string;
  options: string;
  state: PermissionState;
  option_id: string | null;
  answered_by: string | null;
  asked_at: number;
  ended_at: number | null;
}

export function permissionOf(row: PermissionRow): Permission {
  return {
    id: row.id,
    conversation: row.conversation,
    turn: row.turn_id,
    attempt: row.attempt,
    title: row.title,
    toolCall: JSON.parse(row.tool_call),
    options: JSON.parse(row.options),
    state: row.state,
    optionId: row.option_id,
    answeredBy: row.answered_by,
    askedAt: row.asked_at,
    endedAt: row.ended_at,
  };
}
