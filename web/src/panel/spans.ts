import type { Conversation, Session, TurnOutline } from 'throughline/client';
import { sessionOrders } from '../ui/colours.ts';

/** Consecutive turns that one session answered. */
export interface Span {
  readonly kind: 'span';
  readonly from: number;
  readonly to: number;
  /** Null: they were sent to no session. */
  readonly session: Pick<Session, 'id' | 'agent' | 'origin' | 'state' | 'watermark' | 'dropped'> | null;
  readonly agent: string;
  /** How the session got its context for the first of them; null: nothing was sent. */
  readonly rung: TurnOutline['rung'];
  /** The number of the session in the order in which they were opened. It decides the colour. */
  readonly order: number;
}

/** Another conversation: the original of this one (`parent`), or a fork of this one (`child`), after turn `n`. */
export interface Fork {
  readonly kind: 'parent' | 'child';
  readonly n: number;
  readonly conversationId: string;
  readonly title: string;
}

/** One row of the graph. `through`: the lanes of sessions that are used again further down. */
export interface LineageRow {
  readonly item: Span | Fork;
  readonly lane: number;
  /** The lane of the previous row; null: it is the first row. */
  readonly from: number | null;
  readonly through: readonly number[];
}

export function spansOf(turns: readonly TurnOutline[], sessions: readonly Session[]): Span[] {
  const known = new Map(sessions.map((session) => [session.id, session]));
  const orders = sessionOrders(sessions);
  const spans: Span[] = [];
  for (const { n, sessionId, agent, rung, state } of turns) {
    // A prompt that was never sent belongs to no session, and does not separate turns of one session.
    if (sessionId === null && (state === 'cancelled' || state === 'queued')) continue;
    const before = spans.at(-1);
    if (before !== undefined && (before.session?.id ?? null) === sessionId && before.agent === agent) {
      spans[spans.length - 1] = { ...before, to: n };
      continue;
    }
    const session = sessionId === null ? null : (known.get(sessionId) ?? unknown(sessionId, agent));
    spans.push({ kind: 'span', from: n, to: n, session, agent, rung, order: orders.get(sessionId ?? '') ?? 0 });
  }
  return spans;
}

function unknown(id: string, agent: string): NonNullable<Span['session']> {
  return { id, agent, origin: 'new', state: 'closed', watermark: 0, dropped: 0 };
}

/** The parent first, and each child after the span with its turn. */
function withForks(spans: readonly Span[], forks: readonly Fork[]): (Span | Fork)[] {
  const items: (Span | Fork)[] = forks.filter(({ kind }) => kind === 'parent');
  const children = forks.filter(({ kind }) => kind === 'child').toSorted((a, b) => a.n - b.n);
  for (const span of spans) {
    items.push(span);
    while (children[0] !== undefined && children[0].n <= span.to) items.push(...children.splice(0, 1));
  }
  return [...items, ...children];
}

/**
 * The rows from the first to the last. A session keeps its lane until its last span; then the lane is free again. So sessions that only
 * follow each other share one lane, and a session that is used again later keeps its own lane beside it.
 */
export function lineageRows(spans: readonly Span[], forks: readonly Fork[] = []): LineageRow[] {
  const items = withForks(spans, forks);
  const lastUse = new Map<string, number>();
  items.forEach((item, index) => {
    if (item.kind === 'span' && item.session !== null) lastUse.set(item.session.id, index);
  });
  const busy = new Map<number, string>();
  let before: number | null = null;
  return items.map((item, index) => {
    const id = item.kind === 'span' ? (item.session?.id ?? null) : null;
    for (const [lane, user] of busy) if ((lastUse.get(user) ?? -1) < index) busy.delete(lane);
    const own = [...busy].find(([, user]) => user === id)?.[0];
    const lane = own ?? firstFree(busy);
    const through = [...busy.keys()].filter((each) => each !== lane);
    const from = before;
    if (id !== null) busy.set(lane, id);
    if (item.kind !== 'child') before = lane;
    return { item, lane, from, through };
  });
}

function firstFree(busy: ReadonlyMap<number, string>): number {
  let lane = 0;
  while (busy.has(lane)) lane += 1;
  return lane;
}

/** The original of the conversation and its forks, if they are loaded. */
export function forksOf(conversation: Conversation, others: readonly Conversation[]): Fork[] {
  const titleOf = (id: string) => {
    const found = others.find((other) => other.id === id);
    return found?.title || found?.key || 'another conversation';
  };
  const { id, parent } = conversation;
  const from = parent && { kind: 'parent' as const, n: parent.n, conversationId: parent.conversationId };
  const children = others.flatMap((other) =>
    other.parent?.conversationId === id
      ? [{ kind: 'child' as const, n: other.parent.n, conversationId: other.id, title: titleOf(other.id) }]
      : [],
  );
  return [...(from ? [{ ...from, title: titleOf(from.conversationId) }] : []), ...children];
}
