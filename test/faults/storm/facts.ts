import { hasEnded, type TurnEnd, type TurnState } from '../../../src/core/turn/turn.ts';
import type { Place } from '../harness/place.ts';

/** What the database has of one conversation after a storm. */
export interface ConversationFacts {
  readonly key: string;
  readonly pending: number;
  readonly head: number;
  readonly events: readonly EventFact[];
  readonly turns: readonly TurnFact[];
  readonly watermarks: readonly number[];
  /** Names of the tools that ran, in order. */
  readonly ran: readonly string[];
}

export interface EventFact {
  readonly seq: number;
  readonly kind: string;
  readonly n: number | null;
  /** Null: not written under a lease. */
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

/** For both stores. Without the cast, PostgreSQL would return long integers as text. */
const int = (column: string, name = column.slice(2)) => `CAST(${column} AS int) AS ${name}`;
const CONVERSATIONS = `
  SELECT ${int('c.no')}, c.key, ${int('l.pending')}, ${int('l.head')}
  FROM conversations c JOIN leases l ON l.conv = c.no ORDER BY c.no`;
const EVENTS = `
  SELECT ${int('e.seq')}, e.kind, ${int('e.epoch')}, ${int('t.n')}
  FROM events e LEFT JOIN turns t ON t.no = e.turn WHERE e.conv = ? ORDER BY e.seq`;
const WATERMARKS = `SELECT ${int('s.watermark')} FROM sessions s WHERE s.conv = ?`;
const TURNS = `
  SELECT t.id, ${int('t.n')}, t.request_id, t.state, t.failure, r.body,
    (SELECT p.body FROM receipts p
     WHERE p.conv = t.conv AND p.turn = t.n AND CAST(p.warm AS int) = 0 ORDER BY p.attempt DESC LIMIT 1) AS receipt
  FROM turns t LEFT JOIN records r ON r.turn = t.no WHERE t.conv = ? ORDER BY t.n`;

export async function readFacts(place: Place): Promise<ConversationFacts[]> {
  const conversations = await place.rows<{ no: number; key: string; pending: number; head: number }>(CONVERSATIONS);
  const all: ConversationFacts[] = [];
  for (const { no, key, pending, head } of conversations) {
    const watermarks = await place.rows<{ watermark: number }>(WATERMARKS, no);
    all.push({
      ...{ key, pending, head },
      events: await place.rows<EventFact>(EVENTS, no),
      turns: await turnsOf(place, no),
      watermarks: watermarks.map(({ watermark }) => watermark),
      ran: place.ran(key),
    });
  }
  return all;
}

interface TurnRow {
  readonly id: string;
  readonly n: number;
  readonly request_id: string | null;
  readonly state: TurnState;
  readonly failure: string | null;
  readonly body: string | null;
  readonly receipt: string | null;
}

async function turnsOf(place: Place, conv: number): Promise<TurnFact[]> {
  const rows = await place.rows<TurnRow>(TURNS, conv);
  return rows.map(({ id, n, request_id, state, failure, body, receipt }) => ({
    id,
    n,
    requestId: request_id,
    state,
    failure,
    record: body === null ? null : { reply: replyOf(body) },
    dropped: receipt === null ? 0 : (JSON.parse(receipt) as { dropped: number }).dropped,
  }));
}

function replyOf(body: string): string {
  const { parts } = JSON.parse(body) as { parts: { type: string; text?: string }[] };
  return parts.flatMap(({ type, text }) => (type === 'text' && text !== undefined ? [text] : [])).join('\n\n');
}
