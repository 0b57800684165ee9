import { isObject } from './content.ts';

/**
 * A change of a file in the content of a tool: `{ type: 'diff', path, oldText, newText }`. The texts are those of the whole file. Where
 * they are only a part of it, `_meta` says at which lines it begins, if that is known:
 *
 *     { "type": "diff", …, "_meta": { "throughline/lines": [28, 28] } }    // in the old, and in the new file; null: not known
 */
export interface ReportedDiff {
  readonly path: string;
  /** Null: there was no file, or (with `lines` null) what it held is not known. */
  readonly oldText: string | null;
  readonly newText: string;
  /** The numbers of the first line, in the old and in the new file; null: not known. */
  readonly lines: readonly [number, number] | null;
}

const LINES = 'throughline/lines';
const AT_START = [1, 1] as const;

/** As content of a tool. */
export function diffContent({ path, oldText, newText, lines }: ReportedDiff): object {
  return { type: 'diff', path, oldText, newText, _meta: { [LINES]: lines } };
}

/** Null: the content is none. */
export function reportedDiff(content: unknown): ReportedDiff | null {
  if (!isObject(content) || content.type !== 'diff' || typeof content.newText !== 'string') return null;
  const { path, oldText, newText, _meta: meta } = content;
  return {
    path: typeof path === 'string' ? path : '',
    oldText: typeof oldText === 'string' ? oldText : null,
    newText,
    lines: isObject(meta) && LINES in meta ? linesIn(meta[LINES]) : AT_START,
  };
}

function linesIn(value: unknown): readonly [number, number] | null {
  if (!Array.isArray(value)) return null;
  const [old, now] = value;
  return Number.isSafeInteger(old) && Number.isSafeInteger(now) && old >= 1 && now >= 1 ? [old, now] : null;
}

/** What a record keeps of the change of a file. */
export interface RecordedDiff extends ReportedDiff {
  /** It was too long: a new file has only its beginning, and any other change no text. Left out: it is whole. */
  readonly cut?: true;
}

/** In characters, of all changes of one tool. */
const MOST_RECORDED = 32_768;
/** So many lines around a change are kept. */
const CONTEXT = 3;

/** Each change without the lines of the file that are far from it. */
export function recordedDiffs(diffs: readonly ReportedDiff[]): RecordedDiff[] {
  let left = MOST_RECORDED;
  return diffs.map((diff) => {
    const trimmed = around(diff);
    const length = (trimmed.oldText?.length ?? 0) + trimmed.newText.length;
    const kept = length <= left ? trimmed : shortened(trimmed, left);
    left -= (kept.oldText?.length ?? 0) + kept.newText.length;
    return kept;
  });
}

/** The changed lines, with a few before and after them. */
function around(diff: ReportedDiff): ReportedDiff {
  if (diff.oldText === null) return diff;
  const { old, now, start, end } = changedLines(diff.oldText, diff.newText);
  const [from, rest] = [Math.max(0, start - CONTEXT), Math.max(0, end - CONTEXT)];
  const part = (lines: readonly string[]) => lines.slice(from, lines.length - rest).join('\n');
  const lines = diff.lines && ([diff.lines[0] + from, diff.lines[1] + from] as const);
  return { ...diff, oldText: part(old), newText: part(now), lines };
}

/** The lines of two texts, and how many of them are the same at the start and at the end. */
export function changedLines(before: string, after: string) {
  const [old, now] = [before, after].map((text) => (text === '' ? [] : text.split('\n'))) as [string[], string[]];
  let [start, end] = [0, 0];
  const shorter = Math.min(old.length, now.length);
  while (start < shorter && old[start] === now[start]) start += 1;
  while (end < shorter - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  return { old, now, start, end };
}

/** Half of a change would look like another one, so only the beginning of a new file is kept. */
function shortened(diff: ReportedDiff, most: number): RecordedDiff {
  if (diff.oldText !== null) return { ...diff, oldText: '', newText: '', cut: true };
  const end = diff.newText.lastIndexOf('\n', most - 1);
  return { ...diff, newText: end < 0 || most <= 0 ? '' : diff.newText.slice(0, end + 1), cut: true };
}

/** Whether a value from outside is what a record keeps. */
export function isRecordedDiff(value: unknown): value is RecordedDiff {
  if (!isObject(value) || typeof value.path !== 'string' || typeof value.newText !== 'string') return false;
  const isPlaced = value.lines === null || linesIn(value.lines) !== null;
  return isPlaced && (value.oldText === null || typeof value.oldText === 'string') && (value.cut ?? true) === true;
}
