import { diffArrays } from 'diff';

/*
 * One model of every diff of the page: of the texts that an agent reports, and of the patches of git.
 *
 *   old and new text ──diffOfTexts──┐
 *                                   ├──▶ rows: lines that are the same, added, removed; folds; notes
 *   patch ────────────diffOfPatch───┘
 *
 * The counts are those of the rows: what is shown and folded is all that there is.
 */

/** A part of a file before and after. */
export interface TextChange {
  /** Null: there was no file. */
  readonly oldText: string | null;
  readonly newText: string;
  /** The numbers of the first line, in the old and in the new file; null: not known. */
  readonly lines: readonly [number, number] | null;
}

export interface Line {
  readonly kind: 'same' | 'added' | 'removed';
  /** Its numbers in the old and in the new file; null: it is not in it, or its place is not known. */
  readonly old: number | null;
  readonly now: number | null;
  readonly text: string;
  /** What has changed within the line. */
  readonly changed: readonly Range[];
}

export type Row =
  | Line
  /** Lines that are the same. `rows` null: their text is not known here. */
  | { readonly kind: 'fold'; readonly count: number; readonly rows: readonly Line[] | null }
  | { readonly kind: 'note'; readonly text: string };

/** From the first character, to before the last. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

export interface Diff {
  readonly rows: readonly Row[];
  readonly added: number;
  readonly removed: number;
}

/** Lines that are the same are shown so far around a change. */
const CONTEXT = 3;
/** Fewer lines are not folded: the fold would take as much room. */
const LEAST_FOLDED = 3;
/** Texts with more changes than this are not compared line by line: that would take seconds. */
const MOST_CHANGES = 1_500;
const NO_END = 'No line end at the end of the file.';

/** The changes of one file, in the order of its lines. */
export function diffOfTexts(changes: readonly TextChange[]): Diff {
  return joined(changes.map(partOf));
}

/** A part of a file, with the numbers of its first lines, and of the lines after it; null: not known. */
interface Part {
  readonly rows: Row[];
  readonly from: Place | null;
  readonly to: Place | null;
}

type Place = readonly [old: number, now: number];

function partOf({ oldText, newText, lines: from }: TextChange): Part {
  const [before, after] = withoutReturns(oldText ?? '', newText);
  const [old, now] = [linesOf(before), linesOf(after)];
  const rows = folded(withChangedWords(compared(old, now, from)));
  if (!endsAlike(before, after)) {
    rows.push({ kind: 'note', text: `${before.endsWith('\n') ? 'New' : 'Old'} file: ${NO_END}` });
  }
  return { rows, from, to: from && [from[0] + old.length, from[1] + now.length] };
}

/** Files with the line ends of Windows: the returns are no news if every line has one. */
function withoutReturns(before: string, after: string): readonly [string, string] {
  const isWindows = [before, after].every((text) => !/(?<!\r)\n/.test(text)) && `${before}${after}`.includes('\r\n');
  return isWindows ? [before.replaceAll('\r\n', '\n'), after.replaceAll('\r\n', '\n')] : [before, after];
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

function endsAlike(before: string, after: string): boolean {
  return before === '' || after === '' || before.endsWith('\n') === after.endsWith('\n');
}

function compared(old: readonly string[], now: readonly string[], first: readonly [number, number] | null): Line[] {
  const changes = diffArrays([...old], [...now], { maxEditLength: MOST_CHANGES }) ?? [
    { value: [...old], removed: true, added: false },
    { value: [...now], removed: false, added: true },
  ];
  let [atOld, atNow] = first ?? [1, 1];
  return changes.flatMap(({ value, added, removed }) =>
    value.map((text): Line => {
      const kind = added ? 'added' : removed ? 'removed' : 'same';
      const numbers = { old: kind === 'added' ? null : atOld, now: kind === 'removed' ? null : atNow };
      if (kind !== 'added') atOld += 1;
      if (kind !== 'removed') atNow += 1;
      return { kind, ...(first === null ? { old: null, now: null } : numbers), text, changed: [] };
    }),
  );
}

/** Folds what is far from every change. */
function folded(rows: readonly Row[]): Row[] {
  const changedAt = rows.flatMap((row, index) => (row.kind === 'same' ? [] : [index]));
  const shown: Row[] = [];
  let from = 0;
  for (const at of [...changedAt, Number.POSITIVE_INFINITY]) {
    const run = rows.slice(from, at) as Line[];
    const head = from === 0 ? 0 : CONTEXT;
    const tail = at === Number.POSITIVE_INFINITY ? 0 : CONTEXT;
    const middle = run.slice(head, Math.max(head, run.length - tail));
    if (middle.length < LEAST_FOLDED || changedAt.length === 0) shown.push(...run);
    else
      shown.push(
        ...run.slice(0, head),
        { kind: 'fold', count: middle.length, rows: middle },
        ...run.slice(head + middle.length),
      );
    if (at !== Number.POSITIVE_INFINITY) shown.push(rows[at] as Row);
    from = at + 1;
  }
  return shown;
}

/** Puts the parts of a file behind each other, with the lines between them folded. */
function joined(parts: readonly Part[]): Diff {
  const rows: Row[] = [];
  for (const [index, part] of parts.entries()) {
    const last = parts[index - 1];
    if (last !== undefined) rows.push(...between(last.to, part.from));
    rows.push(...part.rows);
  }
  return { rows, ...countsOf(rows) };
}

function between(to: Place | null, from: Place | null): Row[] {
  if (to === null || from === null || from[1] < to[1]) return [{ kind: 'note', text: 'Elsewhere in the file:' }];
  return from[1] === to[1] ? [] : [{ kind: 'fold', count: from[1] - to[1], rows: null }];
}

function countsOf(rows: readonly Row[]) {
  const count = (kind: Row['kind']) => rows.filter((row) => row.kind === kind).length;
  return { added: count('added'), removed: count('removed') };
}

// ── patches ──

const PLACE = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** The lines of a patch of one file, as git prints it. */
export function diffOfPatch(patch: string): Diff {
  const parts: Hunk[] = [];
  for (const line of patch.replace(/\n$/, '').split('\n')) {
    const last = parts.at(-1);
    // A line of the file may look like a place: the numbers of the place before say how many lines belong to it.
    const place = last === undefined || last.isWhole ? PLACE.exec(line) : null;
    if (place === null) last?.add(line);
    else parts.push(new Hunk(place));
  }
  return joined(parts.map(({ from, to, lines }) => ({ from, to, rows: folded(withChangedWords(lines)) })));
}

class Hunk {
  readonly lines: Row[] = [];
  readonly from: Place;
  readonly to: Place;
  #old: number;
  #now: number;

  constructor([, old = '', oldCount = '1', now = '', nowCount = '1']: RegExpExecArray) {
    // Of no lines, git names the line before.
    this.from = [Number(old) + (oldCount === '0' ? 1 : 0), Number(now) + (nowCount === '0' ? 1 : 0)];
    this.to = [this.from[0] + Number(oldCount), this.from[1] + Number(nowCount)];
    [this.#old, this.#now] = this.from;
  }

  get isWhole(): boolean {
    return this.#old >= this.to[0] && this.#now >= this.to[1];
  }

  add(line: string): void {
    if (line.startsWith('\\')) this.lines.push({ kind: 'note', text: NO_END });
    else if (!this.isWhole) {
      const kind = line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : 'same';
      const old = kind === 'added' ? null : this.#old++;
      const now = kind === 'removed' ? null : this.#now++;
      this.lines.push({ kind, old, now, text: line.slice(1), changed: [] });
    }
  }
}

// ── words ──

/** Longer lines are not compared word by word. */
const LONGEST_COMPARED = 1_000;
/** If less of a line is the same, it is a new line, and marks in it would only be noise. */
const LEAST_SAME = 0.35;
const WORDS = /[\p{L}\p{N}_]+|\s+|./gsu;

/** Lines that were removed, and those that were added after them, may be the same lines with other words. */
function withChangedWords(rows: readonly Row[]): Row[] {
  const result = [...rows];
  for (let at = 0; at < result.length; ) {
    const removed = runOf(result, at, 'removed');
    const added = runOf(result, at + removed, 'added');
    for (let n = 0; n < Math.min(removed, added); n += 1) compareWords(result, at + n, at + removed + n);
    at += Math.max(1, removed + added);
  }
  return result;
}

function runOf(rows: readonly Row[], from: number, kind: Row['kind']): number {
  let to = from;
  while (rows[to]?.kind === kind) to += 1;
  return to - from;
}

function compareWords(rows: Row[], oldAt: number, nowAt: number): void {
  const [before, after] = [rows[oldAt] as Line, rows[nowAt] as Line];
  if (Math.max(before.text.length, after.text.length) > LONGEST_COMPARED) return;
  const changes = diffArrays(before.text.match(WORDS) ?? [], after.text.match(WORDS) ?? []);
  const ranges = { removed: [] as Range[], added: [] as Range[] };
  let [old, now, same] = [0, 0, 0];
  for (const { value, added, removed } of changes) {
    const text = value.join('');
    if (removed) add(ranges.removed, old, text, before.text);
    if (added) add(ranges.added, now, text, after.text);
    if (!added && !removed) same += text.trim().length;
    if (!added) old += text.length;
    if (!removed) now += text.length;
  }
  if (same < LEAST_SAME * Math.max(before.text.trim().length, after.text.trim().length)) return;
  rows[oldAt] = { ...before, changed: ranges.removed };
  rows[nowAt] = { ...after, changed: ranges.added };
}

/** Ranges with only white space or a sign between them are one. */
function add(ranges: Range[], from: number, { length }: string, line: string): void {
  const last = ranges.at(-1);
  if (last !== undefined && /^(?:\s*|\W)$/.test(line.slice(last.to, from)))
    ranges[ranges.length - 1] = { from: last.from, to: from + length };
  else ranges.push({ from, to: from + length });
}
