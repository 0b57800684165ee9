import { hasEnded, type TurnEnd, type TurnState } from '../../../src/core/turn/turn.ts';
import type { Place } from '../harness/place.ts';

/** All that is left of one conversation after a storm, as the database has it. */
export interface ConversationFacts {
  readonly key: string;
  readonly pending: number;
  readonly head: number;
  readonly events: readonly EventFact[];
  readonly turns: readonly TurnFact[];
  readonly watermarks: readonly number[];
  /** Names of the tools that ran, in the order in which they did. */
  readonly ran: readonly string[];
}

export interface EventFact {
  readonly seq: number;
  readonly kind: string;
  readonly n: number | null;
  /** Null: written from outside the fence. */
  readonly epoch: number | null;
}

export interface TurnFact {
  readonly id: string;
  readonly n: number;
  readonly requestId: string | null;
  readonly state: TurnState;
  readonly failure: string | null;
  /** Null: it was never sent. */
  readonly record: { readonly reply: string } | null;
  /** Turns of the history that the session of the last attempt lacked; 0 when nothing was dropped. */
  readonly dropped: number;
}

export function ends(facts: readonly ConversationFacts[]): Record<TurnEnd, number> {
  const count: Record<TurnEnd, number> = { completed: 0, failed: 0, cancelled: 0, interrupted: 0 };
  for (const { state } of facts.flatMap(({ turns }) => turns)) if (hasEnded(state)) count[state] += 1;
  return count;
}

export function readFacts(place: Place): ConversationFacts[] {
  const conversations = place.rows<{ no: number; key: string; pending: number; head: number }>(
    'SELECT c.no, c.key, l.pending, l.head FROM conversations c JOIN leases l ON l.conv = c.no ORDER BY c.no',
  );
  return conversations.map(({ no, key, pending, head }) => ({
    key,
    pending,
    head,
    events: place.rows<EventFact>(
      `SELECT e.seq, e.kind, e.epoch, t.n FROM events e LEFT JOIN turns t ON t.no = e.turn WHERE e.conv = ? ORDER BY e.seq`,
      no,
    ),
    turns: turnsOf(place, no),
    watermarks: place
      .rows<{ watermark: number }>('SELECT watermark FROM sessions WHERE conv = ?', no)
      .map(({ watermark }) => watermark),
    ran: place.ran(key),
  }));
}

interface TurnRow {
  readonly id: string;
  readonly n: number;
  readonly request_id: string | null;
  readonly state: TurnState;
  readonly failure: string | null;
  readonly body: string | null;
  readonly dropped: number | null;
}

function turnsOf(place: Place, conv: number): TurnFact[] {
  const rows = place.rows<TurnRow>(
    `SELECT t.id, t.n, t.request_id, t.state, t.failure, r.body,
       (SELECT json_extract(p.body, '$.dropped') FROM receipts p
        WHERE p.conv = t.conv AND p.turn = t.n AND p.warm = 0 ORDER BY p.attempt DESC LIMIT 1) AS dropped
     FROM turns t LEFT JOIN records r ON r.turn = t.no WHERE t.conv = ? ORDER BY t.n`,
    conv,
  );
  return rows.map(({ id, n, request_id, state, failure, body, dropped }) => ({
    id,
    n,
    requestId: request_id,
    state,
    failure,
    record: body === null ? null : { reply: replyOf(body) },
    dropped: dropped ?? 0,
  }));
}

function replyOf(body: string): string {
  const { parts } = JSON.parse(body) as { parts: { type: string; text?: string }[] };
  return parts.flatMap(({ type, text }) => (type === 'text' && text !== undefined ? [text] : [])).join('\n\n');
}
