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
