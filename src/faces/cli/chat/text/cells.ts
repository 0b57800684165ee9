import type { Style } from '../../output.ts';
import { cells, cellsOf, graphemes } from '../../terminal-text.ts';

/* Text on a terminal: styled spans, how many cells they take, and how they are broken into lines. No grapheme is ever cut. */

export interface Span {
  readonly text: string;
  readonly styles: readonly Style[];
}
export type Line = readonly Span[];

const PLAIN: readonly Style[] = [];

export function span(text: string, ...styles: readonly Style[]): Span {
  return { text, styles: styles.length === 0 ? PLAIN : styles };
}

/** In code units. No script combines so many marks on one letter: longer graphemes are made to fill the screen. */
const LONGEST = 40;

export function lineCells(line: Line): number {
  return line.reduce((sum, { text }) => sum + cells(text), 0);
}

export interface Indents {
  /** Before the first line, and before every other one. */
  readonly first: Line;
  readonly rest: Line;
}

const NO_INDENTS: Indents = { first: [], rest: [] };

interface Cell {
  readonly text: string;
  readonly width: number;
  readonly styles: readonly Style[];
}

/** Breaks spans into lines of at most `width` cells: at spaces, between wide characters, and within a word that is too long. */
export function wrap(spans: Line, width: number, { first, rest }: Indents = NO_INDENTS): Line[] {
  const lines: Line[] = [];
  let row: Cell[] = [];
  let used = 0;
  /** The last line ended at a space. */
  let full = false;
  const rooms = [first, rest].map((indent) => Math.max(1, width - lineCells(indent)));
  const room = () => rooms[lines.length === 0 ? 0 : 1] as number;
  const end = (count: number) => {
    lines.push([...(lines.length === 0 ? first : rest), ...joined(withoutEnd(row.slice(0, count)))]);
    row = row.slice(count);
    used = row.reduce((sum, cell) => sum + cell.width, 0);
  };
  for (const { text, styles } of spans) {
    for (const grapheme of graphemes(text)) {
      if (grapheme === '\n') {
        // A line that is full was ended already.
        if (!full || row.length > 0) end(row.length);
        full = false;
        continue;
      }
      const cell = { text: grapheme.length > LONGEST ? '\ufffd' : grapheme, width: cellsOf(grapheme), styles };
      if (used + cell.width > room() && row.length > 0) {
        full = grapheme === ' ';
        end(full ? row.length : breakIn(row, cell));
        if (full) continue; // the space is where the line breaks
      }
      if (full && grapheme === ' ' && row.length === 0) continue;
      full = false;
      row.push(cell);
      used += cell.width;
    }
  }
  if (row.length > 0 || lines.length === 0) end(row.length);
  return lines;
}

/** A name, and what it is. */
export type Described = readonly [name: string, what: string];

/** With fewer cells beside the names, the second column would have single words. */
const LEAST_BESIDE = 24;

/** Two columns. Where the terminal is too narrow for them, the description stands below the name. */
export function describedLines(rows: readonly Described[], width: number): Line[] {
  const column = Math.max(...rows.map(([name]) => cells(name))) + 2;
  const isNarrow = width - column < LEAST_BESIDE;
  return rows.flatMap(([name, what]): Line[] => {
    if (isNarrow) {
      const indent = [span('  ')];
      return [...wrap([span(name, 'cyan')], width), ...wrap([span(what)], width, { first: indent, rest: indent })];
    }
    const first = [span(name + ' '.repeat(column - cells(name)), 'cyan')];
    return wrap([span(what)], width, { first, rest: [span(' '.repeat(column))] });
  });
}

/** How many cells of a full row stay on its line. */
function breakIn(row: readonly Cell[], next: Cell): number {
  if (next.width === 2) return row.length;
  for (let at = row.length; at > 0; at -= 1) {
    const before = row[at - 1] as Cell;
    if (before.text === ' ' && row.slice(0, at).some(({ text }) => text !== ' ')) return at;
    if (before.width === 2) return at;
  }
  return row.length;
}

function withoutEnd(row: readonly Cell[]): readonly Cell[] {
  const last = row.findLastIndex(({ text }) => text !== ' ');
  return row.slice(0, last + 1);
}

/** Neighbours of the same style become one span. */
function joined(row: readonly Cell[]): Span[] {
  const spans: { text: string; styles: readonly Style[] }[] = [];
  for (const { text, styles } of row) {
    const last = spans.at(-1);
    if (last !== undefined && last.styles === styles) last.text += text;
    else spans.push({ text, styles });
  }
  return spans;
}

/** The beginning of a line, as much as fits; an ellipsis says that there is more. */
export function clipped(line: Line, width: number): Line {
  if (lineCells(line) <= width) return line;
  const kept: Span[] = [];
  let left = width - 1;
  for (const { text, styles } of line) {
    let part = '';
    for (const grapheme of graphemes(text)) {
      const need = cellsOf(grapheme);
      if (need > left) return [...kept, { text: `${part}…`, styles }];
      part += grapheme;
      left -= need;
    }
    kept.push({ text: part, styles });
  }
  return kept;
}
