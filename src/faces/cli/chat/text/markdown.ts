import type { Style } from '../../output.ts';
import { type Indents, type Line, lineCells, type Span, span, wrap } from './cells.ts';

/*
 * Markdown for a terminal, while it arrives. The text is read block by block. A block is finished when a later line shows that
 * nothing can be added to it: it is shown for good. What follows is the open block, which is drawn again with every piece of text.
 * Every line of a code block is finished at once, and so is every item of a list that another one follows.
 *
 * The text has passed the control stripper before: no escape sequence is in it, and none is made here.
 */

/** What the beginning of a text needs to know of what came before it. */
export interface Place {
  /** Inside this code block; null: in none. */
  readonly fence: Fence | null;
  /** Something was shown before: blocks are set apart from it. */
  readonly begun: boolean;
}

interface Fence {
  readonly mark: string;
  readonly indent: number;
}

export const AT_START: Place = { fence: null, begun: false };

interface Finished {
  readonly lines: readonly Line[];
  /** How much of the text it is, from the beginning. */
  readonly end: number;
  readonly place: Place;
}

interface Rendered {
  readonly finished: readonly Finished[];
  /** The lines of the block that is not finished. */
  readonly open: () => readonly Line[];
}

interface SourceLine {
  readonly text: string;
  /** Where the next line begins. */
  readonly end: number;
  /** Its end has arrived. */
  readonly whole: boolean;
}

interface Source {
  readonly lines: readonly SourceLine[];
  /** Nothing follows. */
  readonly isOver: boolean;
  /** In how many quotes it stands. */
  readonly depth: number;
}

/** `isOver`: nothing follows. `depth`: in how many quotes it stands. */
export function renderMarkdown(source: string, place: Place, width: number, isOver: boolean, depth = 0): Rendered {
  const lines = sourceLines(source, isOver);
  const finished: Finished[] = [];
  let now = place;
  for (let at = 0; at < lines.length; ) {
    const blank = firstFilled(lines, at, now) > at;
    at = firstFilled(lines, at, now);
    if (at >= lines.length) break;
    const block = blockAt({ lines, isOver, depth }, at, now);
    const isFinished = block.closed && lines[block.to - 1]?.whole;
    const gap: Line[] = now.begun && (blank || block.apart) ? [[]] : [];
    const render = (isOpen: boolean) => {
      const shown = block.render(Math.max(8, width), isOpen);
      return shown.length === 0 ? [] : [...gap, ...shown];
    };
    if (!isFinished) return { finished, open: () => render(true) };
    const shown = render(false);
    now = { fence: block.fence, begun: now.begun || shown.length > 0 };
    finished.push({
      lines: shown,
      end: lines[block.to - 1]?.end ?? 0,
      place: now,
    });
    at = block.to;
  }
  return { finished, open: () => [] };
}

function sourceLines(source: string, isOver: boolean): SourceLine[] {
  const lines: SourceLine[] = [];
  for (let from = 0; from < source.length; ) {
    const at = source.indexOf('\n', from);
    const end = at === -1 ? source.length : at + 1;
    const text = source.slice(from, at === -1 ? end : at).replaceAll('\t', '    ');
    lines.push({ text, end, whole: at !== -1 || isOver });
    from = end;
  }
  return lines;
}

function firstFilled(lines: readonly SourceLine[], from: number, { fence }: Place): number {
  if (fence !== null) return from;
  const at = lines.findIndex(({ text }, index) => index >= from && text.trim() !== '');
  return at === -1 ? lines.length : at;
}

interface Block {
  /** The line after its last one. */
  readonly to: number;
  /** No later line can add to it. */
  readonly closed: boolean;
  /** Always set apart from the block before it. */
  readonly apart: boolean;
  /** The code block that is open after it. */
  readonly fence: Fence | null;
  readonly render: (width: number, isOpen: boolean) => readonly Line[];
}

const FENCE = /^( *)(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6}) +(\S.*)$/;
const RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)]) +(?=\S)/;
const DELIMITERS = /^ *\|?(?: *:?-+:? *\|)+ *(?::?-+:? *)?$/;

function blockAt(source: Source, at: number, { fence }: Place): Block {
  const { text } = source.lines[at] as SourceLine;
  if (fence !== null) return codeLine(text, at, fence);
  const opening = FENCE.exec(text);
  if (opening) return openingFence(opening, at);
  const heading = HEADING.exec(text);
  const one = { to: at + 1, closed: true, fence: null };
  if (heading) {
    const level = heading[1]?.length ?? 1;
    const styles: Style[] = level === 1 ? ['bold', 'underline'] : ['bold'];
    return {
      ...one,
      apart: true,
      render: (width, open) => wrap(inline(withoutMarks(heading[2] ?? ''), styles, open), width),
    };
  }
  if (RULE.test(text))
    return { ...one, apart: true, render: (width) => [[span('─'.repeat(Math.min(width, 24)), 'dim')]] };
  if (QUOTE.test(text) && source.depth < DEEPEST) return quote(source, at);
  if (mayBeTable(source.lines, at)) return table(source, at);
  return paragraph(source, at);
}

function withoutMarks(heading: string): string {
  return heading.trimEnd().replace(/ #+$/, '').trimEnd();
}

function codeLine(text: string, at: number, fence: Fence): Block {
  const closing = text.trim();
  const isEnd = closing.startsWith(fence.mark) && [...closing].every((char) => char === fence.mark[0]);
  const code = text.slice(Math.min(fence.indent, text.length - text.trimStart().length));
  const indent = span(' '.repeat(Math.min(fence.indent, 8) + 2));
  return {
    to: at + 1,
    closed: true,
    apart: false,
    fence: isEnd ? null : fence,
    render: (width) => (isEnd ? [] : wrapCode(code, width, indent)),
  };
}

/** Code keeps its spaces, and is cut where the line is full. */
function wrapCode(code: string, width: number, indent: Span): Line[] {
  const unbroken = code.replaceAll(' ', '\u00a0');
  const lines = wrap([span(unbroken, 'cyan')], width, { first: [indent], rest: [indent] });
  return lines.map((line) => line.map(({ text, styles }) => ({ text: text.replaceAll('\u00a0', ' '), styles })));
}

function openingFence([, indent = '', mark = '', language = '']: RegExpExecArray, at: number): Block {
  const label = language.trim();
  const shown: Line[] = label === '' ? [] : [[span(' '.repeat(Math.min(indent.length, 8) + 2)), span(label, 'dim')]];
  const fence = { mark, indent: indent.length };
  // Until its line is complete, it may be something else.
  return {
    to: at + 1,
    closed: true,
    apart: true,
    fence,
    render: (width, open) => (open ? [] : shown.map((line) => wrap(line, width)[0] ?? line)),
  };
}

function quote(source: Source, at: number): Block {
  const { lines } = source;
  let to = at + 1;
  while (to < lines.length && QUOTE.test((lines[to] as SourceLine).text)) to += 1;
  const inner = lines
    .slice(at, to)
    .map(({ text }) => text.replace(QUOTE, ''))
    .join('\n');
  const bar = span('│ ', 'dim');
  return {
    to,
    closed: isFollowed(source, to),
    apart: false,
    fence: null,
    render: (width) => {
      const { finished } = renderMarkdown(inner, AT_START, width - 2, true, source.depth + 1);
      return finished.flatMap(({ lines: shown }) => shown).map((line) => [bar, ...line.map(quoted)]);
    },
  };
}

function quoted({ text, styles }: Span): Span {
  return { text, styles: [...styles, 'dim'] };
}

/** Whether the block has ended: another one follows, or the text has ended. A line that is still arriving may belong to the block. */
function isFollowed({ lines, isOver }: Source, to: number): boolean {
  const next = lines[to];
  if (next === undefined) return isOver;
  return next.whole || [HEADING, QUOTE, ITEM].some((start) => start.test(next.text));
}

const LONGEST_INLINE = 20_000;

/** A paragraph, or one item of a list: its line and those that continue it. */
function paragraph(source: Source, at: number): Block {
  const { lines } = source;
  const first = (lines[at] as SourceLine).text;
  const item = ITEM.exec(first);
  let to = at + 1;
  while (to < lines.length && continues((lines[to] as SourceLine).text)) to += 1;
  const indent = item?.[1]?.length ?? first.length - first.trimStart().length;
  const texts = lines.slice(at, to).map(({ text }) => text.trim());
  if (item) texts[0] = first.slice(item[0].length).trimEnd();
  const mark = item ? `${/\d/.test(item[2] ?? '') ? item[2] : '•'} ` : '';
  return {
    to,
    closed: isFollowed(source, to),
    apart: false,
    fence: null,
    render: (width, open) => {
      const words = texts.map((line) => line.replace(/\\$/, '')).join('\n');
      const spans = inline(withBox(words, item !== null), [], open);
      return wrap(spans, width, indents(Math.min(indent, 12, width >> 1), mark));
    },
  };
}

function indents(indent: number, mark: string): Indents {
  const space = ' '.repeat(indent);
  return {
    first: mark === '' ? [span(space)] : [span(space), span(mark, 'cyan')],
    rest: [span(space + ' '.repeat(mark.length))],
  };
}

function withBox(text: string, isItem: boolean): string {
  return isItem ? text.replace(/^\[( |x|X)\] /, (_, mark) => (mark === ' ' ? '☐ ' : '☑ ')) : text;
}

function continues(text: string): boolean {
  return text.trim() !== '' && ![FENCE, HEADING, RULE, QUOTE, ITEM].some((start) => start.test(text));
}

// ── tables ──

/** The line after the head decides. */
function mayBeTable(lines: readonly SourceLine[], at: number): boolean {
  const [head, delimiters] = [lines[at], lines[at + 1]];
  if (head === undefined || !head.text.includes('|')) return false;
  return delimiters !== undefined && DELIMITERS.test(delimiters.text) && delimiters.text.includes('-');
}

function table(source: Source, at: number): Block {
  const { lines } = source;
  let to = at + 2;
  while (to < lines.length && (lines[to] as SourceLine).text.includes('|')) to += 1;
  const [head, delimiters = '', ...rows] = lines.slice(at, to).map(({ text }) => text);
  const right = cellsIn(delimiters).map((cell) => /^[^:].*:$/.test(cell));
  const all = [head ?? '', ...rows].map(cellsIn);
  return {
    to,
    closed: isFollowed(source, to),
    apart: true,
    fence: null,
    render: (width) => tableLines(all, right, width),
  };
}

function cellsIn(row: string): string[] {
  const inner = row
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '');
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

const MOST_COLUMNS = 20;

function tableLines(rows: readonly string[][], right: readonly boolean[], width: number): Line[] {
  const count = Math.min(MOST_COLUMNS, Math.max(...rows.map((row) => row.length)));
  const content = rows.map((row, index) =>
    Array.from({ length: count }, (_, column) => inline(row[column] ?? '', index === 0 ? ['bold'] : [], false)),
  );
  const natural = Array.from({ length: count }, (_, column) =>
    Math.max(1, ...content.map((row) => lineCells(row[column] ?? []))),
  );
  const widths = shrunk(natural, width - 3 * (count - 1));
  const rule: Line = [span(widths.map((each) => '─'.repeat(each)).join('─┼─'), 'dim')];
  return content.flatMap((row, index) => {
    const shown = rowLines(row, widths, right);
    return index === 0 ? [...shown, rule] : shown;
  });
}

/** Makes the widest columns narrower until the table fits. */
function shrunk(natural: readonly number[], room: number): number[] {
  const widths = [...natural];
  for (let over = widths.reduce((a, b) => a + b, 0) - room; over > 0; over -= 1) {
    const widest = widths.indexOf(Math.max(...widths));
    if ((widths[widest] ?? 1) <= 3) break;
    widths[widest] = (widths[widest] ?? 1) - 1;
  }
  return widths;
}

function rowLines(row: readonly (readonly Span[])[], widths: readonly number[], right: readonly boolean[]): Line[] {
  const wrapped = widths.map((width, column) => wrap(row[column] ?? [], width));
  const height = Math.max(...wrapped.map((lines) => lines.length));
  return Array.from({ length: height }, (_, line) =>
    widths.flatMap((width, column): Span[] => {
      const shown = wrapped[column]?.[line] ?? [];
      const space = span(' '.repeat(Math.max(0, width - lineCells(shown))));
      const isLast = column === widths.length - 1;
      return [...(right[column] ? [space, ...shown] : [...shown, space]), ...(isLast ? [] : [span(' │ ', 'dim')])];
    }),
  );
}

// ── inside a line ──

const DELIMITER_STYLES: readonly (readonly [mark: string, style: Style])[] = [
  ['**', 'bold'],
  ['__', 'bold'],
  ['~~', 'strike'],
  ['*', 'italic'],
  ['_', 'italic'],
];
const LINK =
  /!?\[([^\]\n]{0,1000})\]\(<?([^()\s<>]{0,2000}(?:\([^()\s]{0,500}\)[^()\s<>]{0,500})?)>?(?: +"[^"\n]{0,500}")?\)/y;
const AUTOLINK = /<((?:https?:\/\/|mailto:)[^<>\s]{1,2000})>/y;
const DEEPEST = 4;

/** `isOpen`: a mark without an end applies up to the end of the text. */
export function inline(text: string, styles: readonly Style[], isOpen: boolean, depth = 0): Span[] {
  if (text.length > LONGEST_INLINE || depth > DEEPEST) return [{ text, styles }];
  const spans: Span[] = [];
  /** Marks without an end in the rest of the text. Searching again for each of them would take quadratic time. */
  const endless = new Set<string>();
  let plain = '';
  const push = (...more: readonly Span[]) => {
    if (plain !== '') spans.push({ text: plain, styles });
    plain = '';
    spans.push(...more);
  };
  for (let at = 0; at < text.length; ) {
    const char = text[at] as string;
    if (char === '\\' && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? '')) {
      plain += text[at + 1];
      at += 2;
      continue;
    }
    const found =
      char === '`'
        ? codeSpan(text, at, isOpen, endless)
        : char === '[' || char === '!' || char === '<'
          ? link(text, at, styles)
          : emphasis(text, at, { styles, isOpen, endless, depth });
    if (found === null) {
      plain += char;
      at += 1;
      continue;
    }
    push(...found.spans.map((one) => (char === '`' ? { text: one.text, styles: [...styles, ...one.styles] } : one)));
    at = found.end;
  }
  push();
  return spans;
}

interface Found {
  readonly spans: readonly Span[];
  readonly end: number;
}

function codeSpan(text: string, at: number, isOpen: boolean, endless: Set<string>): Found | null {
  let marks = 1;
  while (text[at + marks] === '`') marks += 1;
  const mark = '`'.repeat(marks);
  const close = endless.has(mark) ? -1 : text.indexOf(mark, at + marks);
  if (close === -1) {
    endless.add(mark);
    if (!isOpen) return { spans: [span(mark)], end: at + marks };
    return { spans: [span(text.slice(at + marks), 'cyan')], end: text.length };
  }
  const code = text.slice(at + marks, close);
  const isPadded = code.startsWith(' ') && code.endsWith(' ') && code.trim() !== '';
  const shown = isPadded ? code.slice(1, -1) : code;
  return { spans: [span(shown, 'cyan')], end: close + marks };
}

/** The address follows the words, so that a link cannot hide where it leads. */
function link(text: string, at: number, styles: readonly Style[]): Found | null {
  AUTOLINK.lastIndex = at;
  const auto = AUTOLINK.exec(text);
  if (auto) return { spans: [{ text: auto[1] ?? '', styles: [...styles, 'underline'] }], end: at + auto[0].length };
  LINK.lastIndex = at;
  const match = LINK.exec(text);
  if (match === null) return null;
  const [whole, words = '', address = ''] = match;
  const label = words === '' ? address : words;
  const shown: Span[] = [{ text: label, styles: [...styles, 'underline'] }];
  if (address !== '' && address !== label) shown.push({ text: ` (${address})`, styles: [...styles, 'dim'] });
  return { spans: shown, end: at + whole.length };
}

interface Within {
  readonly styles: readonly Style[];
  readonly isOpen: boolean;
  readonly endless: Set<string>;
  readonly depth: number;
}

function emphasis(text: string, at: number, { styles, isOpen, endless, depth }: Within): Found | null {
  const [mark, style] = DELIMITER_STYLES.find(([each]) => text.startsWith(each, at)) ?? [];
  if (mark === undefined || style === undefined) return null;
  const from = at + mark.length;
  const opens = /\S/.test(text[from] ?? '') && !(mark.startsWith('_') && /[\p{L}\p{N}]/u.test(text[at - 1] ?? ''));
  if (!opens || endless.has(mark)) return null;
  const close = closing(text, from, mark);
  if (close === -1) {
    endless.add(mark);
    if (!isOpen) return null;
    return { spans: inline(text.slice(from), [...styles, style], true, depth + 1), end: text.length };
  }
  return { spans: inline(text.slice(from, close), [...styles, style], false, depth + 1), end: close + mark.length };
}

function closing(text: string, from: number, mark: string): number {
  for (let at = text.indexOf(mark, from + 1); at !== -1; at = text.indexOf(mark, at + 1)) {
    if (/\s/.test(text[at - 1] ?? '')) continue;
    if (mark.length === 1 && (text[at + 1] === mark || text[at - 1] === mark)) continue;
    if (mark.startsWith('_') && /[\p{L}\p{N}]/u.test(text[at + mark.length] ?? '')) continue;
    return at;
  }
  return -1;
}
