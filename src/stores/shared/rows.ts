// From rows to values: for each table the type of its row, the value made from it, and a SELECT where all stores have the same. Columns have the
// names of fields, quoted: PostgreSQL would make them lower case.

import type { Conversation } from '../../core/conversation.ts';
import type { ConversationEvent } from '../../core/event.ts';
import type { Budget } from '../../core/limits/budget.ts';
import { storedProcess } from '../../core/process.ts';
import type { TurnOutline } from '../../core/public/turn.ts';
import { NOTHING_OMITTED } from '../../core/restore/receipt.ts';
import type { ContextUse, Session } from '../../core/restore/session.ts';
import type { Prompt } from '../../core/turn/content.ts';
import type { Permission } from '../../core/turn/permission.ts';
import type { TurnRecord } from '../../core/turn/record.ts';
import type { Turn } from '../../core/turn/turn.ts';
import { NO_USAGE, type Usage } from '../../core/turn/usage.ts';
import { type ContentSource, readValue } from './content.ts';

/** A value whose fields `J` are stored as JSON, and `N` as JSON or NULL. */
export type Row<T, J extends keyof T, N extends keyof T = never> = Omit<T, J | N> &
  Readonly<Record<J, string> & Record<N, string | null>>;

export function parsed<T>(json: string | null): T | null {
  return json === null ? null : JSON.parse(json);
}

export interface ConversationRow
  extends Row<Omit<Conversation, 'limitPerDay' | 'pinned' | 'putAway'>, 'restore' | 'choices', 'parent' | 'usage'> {
  readonly no: number;
  readonly pinned: number;
  readonly putAway: number;
  /** JSON: `perDay`; left out: none. */
  readonly limits: string;
}

export function limitPerDayOf(limits: string): Budget | null {
  return limits === '{}' ? null : (JSON.parse(limits).perDay ?? null);
}

/** A condition of a list, as its column is stored; null: none. */
export function flag(wanted: boolean | undefined): 0 | 1 | null {
  if (wanted === undefined) return null;
  return wanted ? 1 : 0;
}

export function limitsJson(perDay: Budget | null): string {
  return JSON.stringify(perDay === null ? {} : { perDay });
}

export function conversationOf({ no: _, limits, ...row }: ConversationRow): Conversation {
  const limitPerDay = limitPerDayOf(limits);
  const [restore, choices] = [JSON.parse(row.restore), JSON.parse(row.choices)];
  // A damaged sum is reported by `doctor`; the conversation can still be listed and read.
  const usage = parsed<Usage>(row.usage) ?? NO_USAGE;
  const [pinned, putAway] = [row.pinned === 1, row.putAway === 1];
  return { ...row, pinned, putAway, restore, choices, usage, limitPerDay, parent: parsed(row.parent) };
}

export const TURN = `
  SELECT t.no, t.owner, t.conv, t.request_hash, t.queued_seq, t.prompt_refs, t.was_sent,
    t.id, c.id AS conversation, t.n, t.request_id AS "requestId", t.state, t.agent, t.prompt, t.options, t.attempt,
    t.session_id AS "sessionId", t.retry_of AS "retryOf", t.replaces, t.replaced_by AS "replacedBy", t.sent, t.imported,
    t.cancel_requested AS "cancelRequested", t.failure, t.recovered, t.delivered, t.usage,
    t.created_at AS "createdAt", t.started_at AS "startedAt", t.ended_at AS "endedAt"
  FROM turns t JOIN conversations c ON c.no = t.conv`;

export interface TurnRow
  extends Omit<
    Row<Turn, 'prompt' | 'options' | 'usage', 'sent' | 'failure'>,
    'cancelRequested' | 'imported' | 'recovered' | 'delivered'
  > {
  readonly no: number;
  readonly owner: string;
  readonly conv: number;
  readonly request_hash: Uint8Array | null;
  readonly queued_seq: number;
  readonly prompt_refs: number;
  readonly was_sent: number;
  readonly cancelRequested: number;
  readonly imported: number;
  readonly recovered: number | null;
  readonly delivered: number | null;
}

export function turnOf(db: ContentSource, row: TurnRow): Turn {
  const { no: _, conv, owner, request_hash, queued_seq, prompt_refs, was_sent, recovered, delivered, ...turn } = row;
  return {
    ...turn,
    prompt: readValue(db, owner, turn.prompt, prompt_refs),
    options: JSON.parse(turn.options),
    imported: turn.imported === 1,
    sent: sentOf(parsed(turn.sent)),
    cancelRequested: turn.cancelRequested === 1,
    failure: parsed(turn.failure),
    ...(recovered === 1 && { recovered: true }),
    ...(delivered === 1 && { delivered: true }),
    usage: JSON.parse(turn.usage),
  };
}

function sentOf(sent: Turn['sent']): Turn['sent'] {
  return sent && { ...sent, process: storedProcess(sent.process) };
}

export type OutlineRow = Omit<Row<TurnOutline, 'usage'>, 'imported'> & { readonly imported: number };

export function outlineOf({ usage, imported, ...turn }: OutlineRow): TurnOutline {
  return { ...turn, imported: imported === 1, usage: JSON.parse(usage) };
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

/** Has a prompt only if it differs from the turn's. */
export type RecordBody = Omit<TurnRecord, 'prompt'> & Partial<Pick<TurnRecord, 'prompt'>>;

/** Fields in a fixed order: the hash of a fork is made from the JSON of its records. */
export function recordOf(db: ContentSource, row: RecordRow): TurnRecord {
  const body = readValue<RecordBody>(db, row.owner, row.body, row.body_refs);
  const { version, n, agent, sessionId, outcome, parts, failure, usage, startedAt, endedAt, recovered } = body;
  const prompt = body.prompt ?? readValue<Prompt>(db, row.owner, row.prompt, row.prompt_refs);
  const record = { version, n, agent, sessionId, outcome, prompt, parts, failure, usage, startedAt, endedAt };
  return { ...record, ...(body.unknownBefore && { unknownBefore: true }), ...(recovered && { recovered }) };
}

export const EVENT =
  'SELECT e.seq, e.kind, e.at, e.payload, t.id AS turn FROM events e LEFT JOIN turns t ON t.no = e.turn';

export type EventRow = Row<Omit<ConversationEvent, 'conversation'>, never, 'payload'>;

export function eventOf(conversation: string, row: EventRow): ConversationEvent {
  return { conversation, ...row, payload: parsed(row.payload) ?? {} } as ConversationEvent;
}

export const SESSION = `
  SELECT s.no, s.ref, s.id, c.id AS conversation, s.agent, s.origin, s.parent, s.watermark, s.dropped, s.omitted,
    s.condensed_to AS "condensedTo", s.state, s.position, s.process, s.mirrored, s.memo, s.unread, s.turns, s.usage,
    s.context, s.opened_at AS "openedAt", s.used_at AS "usedAt", s.used_seq
  FROM sessions s JOIN conversations c ON c.no = s.conv`;

export interface SessionRow extends Omit<Row<Session, 'usage', 'process' | 'omitted' | 'context'>, 'unread'> {
  readonly no: number;
  readonly used_seq: number;
  readonly unread: number;
}

export function sessionOf({ no: _, used_seq, ...row }: SessionRow): Session {
  const omitted = parsed<Session['omitted']>(row.omitted) ?? NOTHING_OMITTED;
  const { unread, process, usage } = row;
  const context = parsed<ContextUse>(row.context);
  return {
    ...row,
    omitted,
    context,
    unread: unread === 1,
    process: storedProcess(parsed(process)),
    usage: JSON.parse(usage),
  };
}

export const PERMISSION = `
  SELECT p.no, p.conv, p.turn AS turn_no, c.id AS conversation, t.id AS turn, p.id, p.attempt, p.title,
    p.tool_call AS "toolCall", p.options, p.state, p.option_id AS "optionId", p.answered_by AS "answeredBy",
    p.answered_from AS "answeredFrom", p.reason,
    p.asked_at AS "askedAt", p.ended_at AS "endedAt"
  FROM permissions p JOIN conversations c ON c.no = p.conv JOIN turns t ON t.no = p.turn`;

export interface PermissionRow extends Row<Permission, 'toolCall' | 'options'> {
  readonly no: number;
  readonly conv: number;
  readonly turn_no: number;
}

export function permissionOf({ no: _, conv, turn_no, ...row }: PermissionRow): Permission {
  return { ...row, toolCall: JSON.parse(row.toolCall), options: JSON.parse(row.options) };
}

/** Whether a name can be searched for. A database would look for U+FFFD instead of an unpaired surrogate or a NUL, and find names with that. */
export function isName(name: string): boolean {
  return name.isWellFormed() && !name.includes('\0');
}

/** The columns that hold JSON. The database's own check does not notice a row whose JSON is damaged. */
export const JSON_OF_CONVERSATIONS = {
  conversations: ['restore', 'limits', 'parent', 'choices'],
  turns: ['prompt', 'options', 'sent', 'failure', 'usage'],
  records: ['body'],
  events: ['payload'],
  sessions: ['process', 'usage', 'omitted'],
  receipts: ['body'],
  permissions: ['tool_call', 'options'],
  totals: ['usage', 'day_spent'],
  requeues: ['result'],
};
export const JSON_OF_OTHERS = {
  contents: ['body'],
  workers: ['process', 'takes'],
  usage_days: ['usage'],
  tasks: ['spec', 'progress', 'process', 'gate'],
  task_events: ['payload'],
  task_usage: ['usage'],
  keys: ['scopes'],
  sign_in_links: ['scopes'],
  sandboxes: ['setup', 'disk', 'holder'],
};

/** The tables with rows of one conversation. Each has its number in the column `convOf`. */
export const TABLES_OF_CONVERSATION = [...Object.keys(JSON_OF_CONVERSATIONS), 'leases', 'told'];

export function convOf(table: string): string {
  return table === 'conversations' ? 'no' : 'conv';
}
