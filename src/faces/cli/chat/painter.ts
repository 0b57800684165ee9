import { STYLES } from '../output.ts';
import { stripControls } from '../terminal-text.ts';
import type { Flushed } from './scene.ts';
import { type Line, lineCells } from './text/cells.ts';
import type { View } from './view.ts';

const ESC = '\u001b';
/** Synchronized output: a terminal that supports it shows everything between these two at once. */
const BEGIN = `${ESC}[?2026h${ESC}[?25l`;
const END = `${ESC}[?25h${ESC}[?2026l`;

/**
 * Turns lines into terminal output. Above are lines that were printed for good and scroll away; below them is the part that is drawn
 * again. Only lines that have changed are written, so that nothing flickers. These are the only escape codes of a chat: control
 * characters are removed from every text once more.
 */
export class Painter {
  readonly #color: boolean;
  columns: number;
  rows: number;
  #drawn: readonly string[] = [];
  #widths: readonly number[] = [];
  #cursor = { row: 0, column: 0 };
  /** Lines above the drawn part that were printed since the terminal had another size. */
  #above = 0;

  constructor({ color, columns, rows }: { color: boolean; columns: number; rows: number }) {
    this.#color = color;
    this.columns = columns;
    this.rows = rows;
  }

  /** How many of the lines printed last are still on the screen, and can be erased. */
  get erasable(): number {
    return Math.max(0, Math.min(this.#above, this.rows - this.#drawn.length));
  }

  /** Empty: nothing has changed. */
  paint({ erase, lines }: Flushed, { lines: shown, cursor }: View): string {
    const now = shown.map((line) => this.#render(line));
    const same = now.length === this.#drawn.length && now.every((line, at) => line === this.#drawn[at]);
    const stays = cursor.row === this.#cursor.row && cursor.column === this.#cursor.column;
    if (lines.length === 0 && erase === 0 && same && stays) return '';
    const scrolls = lines.length > 0 || erase > 0;
    const printed = lines.map((line) => `${this.#render(line)}${ESC}[K\r\n`).join('');
    const shrinks = now.length < this.#drawn.length;
    // What is below is erased from the end of the last line, so the cursor has to be there.
    const isUnchanged = (line: string, at: number) =>
      !scrolls && line === this.#drawn[at] && !(shrinks && at === now.length - 1);
    const drawn = now.map((line, at) => (isUnchanged(line, at) ? '' : `\r${line}${ESC}[K`)).join('\r\n');
    const rest = scrolls || shrinks ? `${ESC}[J` : '';
    const top = `\r${up(this.#cursor.row + erase)}`;
    const back = `\r${up(now.length - 1 - cursor.row)}${cursor.column > 0 ? `${ESC}[${cursor.column}C` : ''}`;
    this.#above += lines.length - erase;
    this.#drawn = now;
    this.#widths = shown.map(lineCells);
    this.#cursor = cursor;
    return `${BEGIN}${top}${printed}${drawn}${rest}${back}${END}`;
  }

  /** Removes the drawn part, so that something else can be printed, or this program can leave. */
  clear(): string {
    const cleared = `\r${up(this.#cursor.row)}${ESC}[J`;
    this.#drawn = [];
    this.#widths = [];
    this.#cursor = { row: 0, column: 0 };
    return cleared;
  }

  /**
   * The terminal has another size. It breaks lines that are too long now, so the drawn part has more rows than were written; it is
   * removed, to be drawn again.
   */
  resize(columns: number, rows: number): string {
    const broken = (cells: number) => Math.max(1, Math.ceil(cells / columns));
    const before = this.#widths.slice(0, this.#cursor.row).reduce((sum, cells) => sum + broken(cells), 0);
    const row = before + Math.floor(this.#cursor.column / columns);
    if (columns !== this.columns || rows !== this.rows) this.#above = 0;
    this.columns = columns;
    this.rows = rows;
    this.#cursor = { row, column: 0 };
    return this.clear();
  }

  #render(line: Line): string {
    return line
      .map(({ text, styles }) => {
        const clean = stripControls(text).replaceAll('\n', ' ');
        if (!this.#color || styles.length === 0 || clean === '') return clean;
        return `${ESC}[${styles.map((style) => STYLES[style]).join(';')}m${clean}${ESC}[0m`;
      })
      .join('');
  }
}

function up(rows: number): string {
  return rows > 0 ? `${ESC}[${rows}A` : '';
}
