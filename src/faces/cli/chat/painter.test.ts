import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Painter } from './painter.ts';
import { type Line, span } from './text/cells.ts';

/** A terminal that supports only the sequences that the painter sends. */
class FakeTerminal {
  readonly rows: number;
  readonly lines: string[] = [''];
  row = 0;
  column = 0;

  constructor(rows: number) {
    this.rows = rows;
  }

  write(text: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is written
    const tokens = text.match(/\u001b\[\??[0-9;]*[A-Za-z]|\r|\n|[^\u001b\r\n]+/g) ?? [];
    expect(tokens.join('')).toBe(text);
    for (const token of tokens) this.#take(token);
  }

  #take(token: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is written
    const [, count = '', command = ''] = /^\u001b\[\??([0-9;]*)([A-Za-z])$/.exec(token) ?? [];
    if (token === '\r') this.column = 0;
    else if (token === '\n') {
      this.row += 1;
      if (this.row === this.lines.length) this.lines.push('');
    } else if (command === 'A') this.row = Math.max(this.row - Number(count), this.lines.length - this.rows, 0);
    else if (command === 'C') this.column += Number(count);
    else if (command === 'K') this.lines[this.row] = this.#line().slice(0, this.column);
    else if (command === 'J') {
      this.lines[this.row] = this.#line().slice(0, this.column);
      this.lines.length = this.row + 1;
    } else if (command === '') {
      const line = this.#line().padEnd(this.column);
      this.lines[this.row] = line.slice(0, this.column) + token + line.slice(this.column + token.length);
      this.column += token.length;
    } else expect('mhl').toContain(command);
  }

  #line(): string {
    return this.lines[this.row] ?? '';
  }
}

const lineOf = (text: string): Line => [span(text)];
const word = fc.constantFrom('one', 'two', 'three', '', 'longer words');
const lines = (maxLength: number) => fc.array(word, { maxLength });

test('the screen shows exactly what was printed, erased and drawn', () => {
  const drawn = { live: lines(4), below: lines(2) };
  const frame = fc.record({ printed: lines(4), ...drawn, erase: fc.nat(3), row: fc.nat(5), column: fc.nat(2) });
  fc.assert(
    fc.property(fc.array(frame, { minLength: 1, maxLength: 12 }), (frames) => {
      const terminal = new FakeTerminal(8);
      const painter = new Painter({ color: false, columns: 40, rows: 8 });
      const kept: string[] = [];
      for (const { printed, live, below, erase, row, column } of frames) {
        const shown = [...live, 'input', ...below];
        const erased = Math.min(erase, painter.erasable);
        const cursor = { row: Math.min(row, shown.length - 1), column };
        const view = { lines: shown.map(lineOf), cursor };
        terminal.write(painter.paint({ erase: erased, lines: printed.map(lineOf) }, view));
        kept.splice(kept.length - erased, erased, ...printed);
        expect(terminal.lines).toEqual([...kept, ...shown]);
        expect([terminal.row, terminal.column]).toEqual([kept.length + cursor.row, cursor.column]);
      }
      terminal.write(painter.clear());
      expect(terminal.lines).toEqual([...kept, '']);
    }),
    { numRuns: 500 },
  );
});

const VIEW = { lines: [lineOf('› ')], cursor: { row: 0, column: 2 } };

test('only changed lines are written, and nothing if nothing has changed', () => {
  const painter = new Painter({ color: true, columns: 40, rows: 8 });
  const view = { lines: [lineOf('above'), lineOf('› ')], cursor: { row: 1, column: 2 } };
  expect(painter.paint({ erase: 0, lines: [] }, view)).toContain('above');
  expect(painter.paint({ erase: 0, lines: [] }, view)).toBe('');
  const typed = painter.paint({ erase: 0, lines: [] }, { ...view, lines: [lineOf('above'), lineOf('› x')] });
  expect(typed).toContain('› x');
  expect(typed).not.toContain('above');
});

test('the input stays when the note below it is removed', () => {
  const terminal = new FakeTerminal(8);
  const painter = new Painter({ color: false, columns: 40, rows: 8 });
  const note = { ...VIEW, lines: [...VIEW.lines, lineOf('Press Ctrl-C again to leave.')] };
  for (const view of [VIEW, note, VIEW]) terminal.write(painter.paint({ erase: 0, lines: [] }, view));
  expect(terminal.lines).toEqual(['› ']);
});

test('no text controls the terminal, and without colour there is no style', () => {
  const hostile = '\u001b[2J\u001b]0;title\u0007\u009b31mred\u202e\r\nnext';
  const style = [{ text: hostile, styles: ['bold', 'red'] as const }];
  for (const color of [true, false]) {
    const written = new Painter({ color, columns: 40, rows: 8 }).paint({ erase: 0, lines: [style] }, VIEW);
    for (const piece of ['[2J', 'title', '\u009b', '\u202e', '\u0007']) expect(written).not.toContain(piece);
    expect(written.includes('\u001b[1;31m')).toBe(color);
    expect(written.includes('red\\u{202e} next')).toBe(true);
  }
});

test('in a narrower window the drawn part is removed completely, although its lines were wrapped', () => {
  const painter = new Painter({ color: false, columns: 40, rows: 8 });
  painter.paint(
    { erase: 0, lines: [] },
    { lines: [lineOf('x'.repeat(39)), lineOf('› ')], cursor: { row: 1, column: 2 } },
  );
  expect(painter.resize(20, 8)).toBe('\r\u001b[2A\u001b[J');
  expect(painter.erasable).toBe(0);
});
