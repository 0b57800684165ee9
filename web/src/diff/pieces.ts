import { type Mark, marksIn } from '../../../src/core/input/marks.ts';
import type { Range } from './model.ts';

/** A range with the classes of a highlighter. */
export interface Coloured extends Range {
  readonly classes: string;
}

/** A part of a line that looks the same throughout. */
export interface Piece {
  readonly text: string;
  readonly classes: string;
  readonly isChanged: boolean;
  /** It is this character, which is shown as a box; null: it is ordinary. */
  readonly mark: Mark | null;
}

/** Cuts a line where its colours, its changed words or its marked characters begin and end. The ranges are in order, without overlaps. */
export function piecesOf(text: string, coloured: readonly Coloured[], changed: readonly Range[]): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  for (const piece of marksIn(text, 'code')) {
    const mark = typeof piece === 'string' ? null : piece;
    const end = at + (typeof piece === 'string' ? piece : piece.char).length;
    while (at < end) {
      const [colour, word] = [rangeAt(coloured, at), rangeAt(changed, at)];
      const to = mark === null ? Math.min(end, endOf(coloured, at), endOf(changed, at)) : end;
      pieces.push({ text: text.slice(at, to), classes: colour?.classes ?? '', isChanged: word !== undefined, mark });
      at = to;
    }
  }
  return pieces;
}

function rangeAt<R extends Range>(ranges: readonly R[], at: number): R | undefined {
  return ranges.find(({ from, to }) => from <= at && at < to);
}

/** Where the range at this place ends, or else the next one begins. */
function endOf(ranges: readonly Range[], at: number): number {
  for (const { from, to } of ranges) {
    if (at < from) return from;
    if (at < to) return to;
  }
  return Number.POSITIVE_INFINITY;
}
