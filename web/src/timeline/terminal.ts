/*
 * What a program printed, as a terminal would show it: colours, lines that were written over (progress), characters that were taken back.
 * Sequences that move the cursor elsewhere or do anything else are left out. The result is text with classes, never markup.
 */

/** Text of one look. */
export interface Segment {
  readonly text: string;
  /** Classes; empty: as the rest. */
  readonly look: string;
}

export type Line = readonly Segment[];

/** What is not simply text: line ends, control characters, and sequences that begin with an escape. */
const SPECIAL =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what a terminal reads
  /\u001b(?:\[([0-?]*)[ -/]*([@-~]|$)|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~]?)|\r*\n|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

export function linesOf(output: string): Line[] {
  const screen = new Screen();
  let from = 0;
  for (const special of output.matchAll(SPECIAL)) {
    if (special.index > from) screen.write(output.slice(from, special.index));
    from = special.index + special[0].length;
    const [all, parameters = '', end] = special;
    if (all.endsWith('\n')) screen.newLine();
    else if (all === '\r') screen.to(0);
    else if (all === '\b') screen.to(screen.at - 1);
    else if (end === 'm') screen.setLook(parameters);
    else if (end === 'K') screen.erase(parameters);
  }
  if (from < output.length) screen.write(output.slice(from));
  return screen.lines();
}

class Screen {
  readonly #lines: Line[] = [];
  #line: Segment[] = [];
  #length = 0;
  #style = PLAIN;
  at = 0;

  write(text: string): void {
    const segment = { text, look: lookOf(this.#style) };
    const gap = { text: ' '.repeat(Math.max(0, this.at - this.#length)), look: '' };
    if (this.at >= this.#length) this.#line.push(gap, segment);
    else this.#line = [...cut(this.#line, 0, this.at), segment, ...cut(this.#line, this.at + text.length)];
    // A program may write over one line very often.
    if (this.#line.length > 64) this.#line = joined(this.#line);
    this.at += text.length;
    this.#length = Math.max(this.#length, this.at);
  }

  newLine(): void {
    this.#lines.push(joined(this.#line));
    this.#line = [];
    this.#length = 0;
    this.at = 0;
  }

  to(column: number): void {
    this.at = Math.max(0, column);
  }

  /** `0` or nothing: from the cursor on. `1`: up to it. `2`: the whole line. */
  erase(what: string): void {
    if (what === '1') {
      const blank = { text: ' '.repeat(Math.min(this.at, this.#length)), look: '' };
      this.#line = [blank, ...cut(this.#line, this.at)];
      return;
    }
    this.#line = what === '2' ? [] : cut(this.#line, 0, this.at);
    this.#length = what === '2' ? 0 : Math.min(this.#length, this.at);
  }

  setLook(parameters: string): void {
    this.#style = styled(this.#style, parameters);
  }

  lines(): Line[] {
    return [...this.#lines, joined(this.#line)];
  }
}

/** The columns from one to another. */
function cut(line: readonly Segment[], from: number, to = Number.POSITIVE_INFINITY): Segment[] {
  let start = 0;
  return line.flatMap(({ text, look }) => {
    const part = text.slice(Math.max(0, from - start), Math.max(0, to - start));
    start += text.length;
    return part === '' ? [] : [{ text: part, look }];
  });
}

/** Neighbours of one look as one segment. */
function joined(line: readonly Segment[]): Segment[] {
  const segments: { text: string; look: string }[] = [];
  for (const { text, look } of line) {
    const last = segments.at(-1);
    if (last?.look === look) last.text += text;
    else if (text !== '') segments.push({ text, look });
  }
  return segments;
}

interface Style {
  readonly ink: Hue | null;
  readonly paper: Hue | null;
  readonly marks: ReadonlySet<Mark>;
}

type Mark = 'bold' | 'faint' | 'italic' | 'underline' | 'struck' | 'inverse';
type Hue = 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan' | 'grey' | 'ink';

const PLAIN: Style = { ink: null, paper: null, marks: new Set() };

/** Every colour of a terminal becomes one that can be read in both schemes. */
const INKS: Readonly<Record<Hue, string>> = {
  red: 'text-del',
  green: 'text-add',
  yellow: 'text-look',
  blue: 'text-code-name',
  magenta: 'text-code-key',
  cyan: 'text-code-name',
  grey: 'text-faint',
  ink: 'text-ink',
};

const PAPERS: Readonly<Record<Hue, string>> = {
  red: 'bg-del-soft',
  green: 'bg-add-soft',
  yellow: 'bg-look-soft',
  blue: 'bg-hover',
  magenta: 'bg-hover',
  cyan: 'bg-hover',
  grey: 'bg-hover',
  ink: 'bg-hover',
};

const MARKS: Readonly<Record<Mark, string>> = {
  bold: 'font-semibold',
  faint: 'text-faint',
  italic: 'italic',
  underline: 'underline',
  struck: 'line-through',
  inverse: 'bg-ink text-on-ink',
};

function lookOf({ ink, paper, marks }: Style): string {
  if (marks.has('inverse'))
    return [...marks]
      .filter((mark) => mark !== 'faint')
      .map((mark) => MARKS[mark])
      .join(' ');
  const others = [...marks].filter((mark) => mark !== 'faint' || ink === null).map((mark) => MARKS[mark]);
  return [ink === null ? [] : INKS[ink], paper === null ? [] : PAPERS[paper], others].flat().join(' ');
}

const BASIC: readonly Hue[] = ['ink', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'ink'];
const SETS: Readonly<Record<number, Mark>> = {
  1: 'bold',
  2: 'faint',
  3: 'italic',
  4: 'underline',
  7: 'inverse',
  9: 'struck',
};
const ENDS: Readonly<Record<number, readonly Mark[]>> = {
  22: ['bold', 'faint'],
  23: ['italic'],
  24: ['underline'],
  27: ['inverse'],
  29: ['struck'],
};

/** The style after a sequence that sets it. Parts that are not known change nothing. */
function styled(before: Style, parameters: string): Style {
  let style = before;
  const codes = parameters.split(';').map((part) => part.split(':').map(Number));
  while (codes.length > 0) {
    const [code = 0, ...inner] = codes.shift() ?? [];
    const set = SETS[code];
    if (code === 0) style = PLAIN;
    else if (code === 4 && inner[0] === 0) style = marked(style, [], ['underline']);
    else if (set !== undefined) style = marked(style, [set], []);
    else if (ENDS[code] !== undefined) style = marked(style, [], ENDS[code]);
    else if (code === 38 || code === 48) {
      const hue = extended(inner.length > 0 ? inner : taken(codes));
      style = code === 38 ? { ...style, ink: hue ?? style.ink } : { ...style, paper: hue ?? style.paper };
    } else style = basic(style, code);
  }
  return style;
}

function marked(style: Style, set: readonly Mark[], ended: readonly Mark[]): Style {
  return { ...style, marks: new Set([...style.marks, ...set].filter((mark) => !ended.includes(mark))) };
}

function basic(style: Style, code: number): Style {
  if (code === 39) return { ...style, ink: null };
  if (code === 49) return { ...style, paper: null };
  const [tens, ones] = [Math.floor(code / 10), code % 10];
  const hue = tens === 9 || tens === 10 ? (ones === 0 ? 'grey' : BASIC[ones]) : BASIC[ones];
  if (hue === undefined) return style;
  if (tens === 3 || tens === 9) return { ...style, ink: hue };
  return tens === 4 || tens === 10 ? { ...style, paper: hue } : style;
}

/** What follows 38 or 48 between semicolons: `5;N` or `2;R;G;B`. */
function taken(codes: number[][]): number[] {
  const kind = codes[0]?.[0];
  return codes.splice(0, kind === 5 ? 2 : kind === 2 ? 4 : 0).flat();
}

/** One of 256 colours, or red, green and blue; null: not understood. */
function extended([kind, ...values]: readonly number[]): Hue | null {
  if (kind === 2) return hueOf(values.slice(-3) as [number, number, number]);
  const [index = Number.NaN] = values;
  if (kind !== 5 || !(index >= 0 && index <= 255)) return null;
  if (index < 16) return index === 8 ? 'grey' : (BASIC[index % 8] ?? null);
  if (index >= 232) return index >= 248 || index < 236 ? 'ink' : 'grey';
  const [red, green, blue] = [Math.floor((index - 16) / 36), Math.floor((index - 16) / 6) % 6, (index - 16) % 6];
  return hueOf([red * 51, green * 51, blue * 51]);
}

/** Upper bounds in degrees. */
const HUES: readonly (readonly [number, Hue])[] = [
  [18, 'red'],
  [70, 'yellow'],
  [165, 'green'],
  [200, 'cyan'],
  [258, 'blue'],
  [335, 'magenta'],
  [360, 'red'],
];

function hueOf([red, green, blue]: readonly [number, number, number]): Hue | null {
  const [most, least] = [Math.max(red, green, blue), Math.min(red, green, blue)];
  if (!(least >= 0 && most <= 255)) return null;
  const range = most - least;
  if (range < 40) return most > 80 && most < 190 ? 'grey' : 'ink';
  const sixth =
    most === red ? (green - blue) / range : most === green ? (blue - red) / range + 2 : (red - green) / range + 4;
  const degrees = (sixth * 60 + 360) % 360;
  return HUES.find(([upTo]) => degrees <= upTo)?.[1] ?? 'ink';
}
