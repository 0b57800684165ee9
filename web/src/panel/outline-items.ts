import { isHandoff, type LineTurn, lineAfter, NO_LINE } from '../seams/line.ts';
import type { SeamKind } from '../seams/seam.ts';

/** A row of the outline: a turn, or the seam before it. */
export interface OutlineItem {
  readonly kind: 'turn' | 'seam';
  readonly n: number;
  /** The strands above and at this row. */
  readonly above: number;
  readonly strand: number;
  /** Of a turn that was never sent: there is no line beside it. */
  readonly isUnsent: boolean;
  /** Of a seam. */
  readonly how: SeamKind;
}

/** A turn as the outline shows it. */
export interface OutlineTurn extends LineTurn {
  /** It was cancelled before it was sent, or waits in the queue. */
  readonly isOut: boolean;
  /** It ended without being sent: there is no line beside it. */
  readonly isUnsent: boolean;
}

/** The turns in order, with the seams between them. `forkedAt`: the last turn that was copied; null: it is no fork. */
export function itemsOf(turns: readonly OutlineTurn[], forkedAt: number | null): OutlineItem[] {
  const items: OutlineItem[] = [];
  let end = NO_LINE;
  for (const turn of turns) {
    const before = end;
    end = lineAfter(before, turn);
    const { n } = turn;
    const row = { n, above: before.strand, strand: end.strand, isUnsent: turn.isUnsent };
    const how = seamBefore(turn, before, end, forkedAt);
    if (how !== null) items.push({ ...row, kind: 'seam', how });
    if (!turn.isOut) items.push({ ...row, kind: 'turn', how: 'resume' });
  }
  return items;
}

function seamBefore(
  turn: LineTurn,
  before: typeof NO_LINE,
  end: typeof NO_LINE,
  forkedAt: number | null,
): SeamKind | null {
  if (forkedAt === turn.n - 1 && turn.n > 1) return 'fork';
  if (before.strand === 0) return null;
  if (end.strand === before.strand) return turn.rung === 'resume' ? 'resume' : null;
  if (isHandoff(before, turn)) return 'handoff';
  return turn.given === 'new' || turn.given === 'none' || turn.given === 'live' ? null : turn.given;
}
