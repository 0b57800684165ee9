import type { Conversation, TurnOutline } from 'throughline/client';
import { isHandoff, lineAfter, NO_LINE } from '../seams/line.ts';

/** The turns of one strand of the line. */
export interface Span {
  readonly kind: 'span';
  readonly strand: number;
  readonly from: number;
  readonly to: number;
  readonly agent: string;
  /** The agent's id of the session that answered the last of them; null: it is not known. */
  readonly sessionId: string | null;
  /** How the first of them got its context. */
  readonly how: NonNullable<TurnOutline['rung']> | 'imported' | 'handoff';
}

/** Another conversation: the original of this one (`parent`), or a fork of this one (`child`), after turn `n`. */
export interface Fork {
  readonly kind: 'parent' | 'child';
  readonly n: number;
  readonly conversationId: string;
  readonly title: string;
}

/** The strands from the first to the last. Prompts that were never sent are in none. */
export function spansOf(turns: readonly TurnOutline[]): Span[] {
  const spans: Span[] = [];
  let end = NO_LINE;
  for (const turn of turns) {
    const before = end;
    end = lineAfter(end, turn);
    if (turn.rung === null && !turn.imported) continue;
    const { n, agent, sessionId } = turn;
    const last = spans.at(-1);
    if (last?.strand === end.strand) {
      spans[spans.length - 1] = { ...last, to: n, sessionId };
      continue;
    }
    const handoff = isHandoff(before, turn) && turn.given === null ? 'handoff' : null;
    const how = handoff ?? (turn.imported ? 'imported' : (turn.given ?? turn.rung ?? 'new'));
    spans.push({ kind: 'span', strand: end.strand, from: n, to: n, agent, sessionId, how });
  }
  return spans;
}

/** The parent first, and each child after the span with its turn. */
export function withForks(spans: readonly Span[], forks: readonly Fork[]): (Span | Fork)[] {
  const items: (Span | Fork)[] = forks.filter(({ kind }) => kind === 'parent');
  const children = forks.filter(({ kind }) => kind === 'child').toSorted((a, b) => a.n - b.n);
  for (const span of spans) {
    items.push(span);
    while (children[0] !== undefined && children[0].n <= span.to) items.push(...children.splice(0, 1));
  }
  return [...items, ...children];
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
