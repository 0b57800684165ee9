/*
 * Text that would take a browser longer than a moment to lay out. Nobody reads such a line: its beginning is shown, and the rest when
 * somebody asks for it.
 */

/** Of a longer line only the beginning is shown at first. */
const LONGEST_LINE = 128_000;
/** How much of it. */
const BEGINNING = 8_000;

export interface Shortened {
  readonly text: string;
  /** How many characters are missing. */
  readonly left: number;
}

/** The text with the beginning of every very long line. Lines of code stay: blocks of code are folded on their own. */
export function withShortLines(text: string): Shortened {
  if (!hasLongLine(text)) return { text, left: 0 };
  let left = 0;
  let fence: string | null = null;
  const lines = text.split('\n').map((line) => {
    const [, marks] = /^ {0,3}(`{3,}|~{3,})/.exec(line) ?? [];
    if (marks !== undefined) {
      if (fence === null) fence = marks;
      else if (marks.startsWith(fence)) fence = null;
    }
    if (fence !== null || line.length <= LONGEST_LINE) return line;
    left += line.length - BEGINNING;
    return `${line.slice(0, BEGINNING)}…`;
  });
  return { text: lines.join('\n'), left };
}

function hasLongLine(text: string): boolean {
  if (text.length <= LONGEST_LINE) return false;
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf('\n', from);
    if ((end === -1 ? text.length : end) - from > LONGEST_LINE) return true;
    if (end === -1) return false;
    from = end + 1;
  }
  return false;
}

/** A longer block of code is folded. */
const MOST_LINES = 200;
const MOST_CHARACTERS = 60_000;
/** Of a folded one. */
const FIRST_LINES = 20;
const FIRST_CHARACTERS = 4_000;

export interface Folded {
  readonly text: string;
  /** `4,980 more lines`. */
  readonly rest: string;
}

/** The first lines of a long block of code; null: it is not long. */
export function folded(code: string): Folded | null {
  const lines = countLines(code);
  if (lines <= MOST_LINES && code.length <= MOST_CHARACTERS) return null;
  const first = code.split('\n', FIRST_LINES).join('\n');
  const text = first.slice(0, FIRST_CHARACTERS);
  const left = lines - FIRST_LINES;
  const rest = left > 0 && text === first ? `${left.toLocaleString('en')} more lines` : charactersLeft(code, text);
  return { text, rest };
}

function charactersLeft(code: string, text: string): string {
  return `${(code.length - text.length).toLocaleString('en')} more characters`;
}

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}

/** A piece is at least so long, so that only the last one of a growing text is laid out again. */
const PIECE = 4_096;

/** Cuts after the separator that follows so many characters. Texts with the same beginning have the same first pieces. */
export function piecesOf(text: string, separator: ' ' | '\n'): string[] {
  const all: string[] = [];
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf(separator, from + PIECE);
    const next = end === -1 ? text.length : end + 1;
    all.push(text.slice(from, next));
    from = next;
  }
  return all;
}
