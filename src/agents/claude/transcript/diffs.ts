import { isObject } from '../../../core/turn/content.ts';
import { diffContent } from '../../../core/turn/reported-diff.ts';

/*
 * Changes of files by Claude's tools, as content of a tool. A question has what Claude wants to write: its input. A result has the real
 * patch, with the numbers of the lines.
 */

/** What one of Claude's tools would change; empty: nothing, or its input does not say it. Where in the file is not known. */
export function askedDiffs(name: string, input: unknown): object[] {
  if (!isObject(input) || typeof input.file_path !== 'string') return [];
  const path = input.file_path;
  if (name === 'Write' && typeof input.content === 'string') {
    return [diffContent({ path, oldText: null, newText: input.content, lines: null })];
  }
  const edits = name === 'Edit' ? [input] : name === 'MultiEdit' && Array.isArray(input.edits) ? input.edits : [];
  if (!edits.every(isEdit)) return [];
  return edits.map((edit) => diffContent({ path, oldText: edit.old_string, newText: edit.new_string, lines: null }));
}

function isEdit(edit: unknown): edit is { readonly old_string: string; readonly new_string: string } {
  return isObject(edit) && typeof edit.old_string === 'string' && typeof edit.new_string === 'string';
}

/** In characters. Of a larger change, only Claude's words are kept. */
const LONGEST_PATCH = 262_144;

/** What a tool has changed, from the result that Claude notes beside its message; empty: nothing. */
export function changedDiffs(result: unknown): object[] {
  if (!isObject(result) || typeof result.filePath !== 'string') return [];
  const { filePath: path, structuredPatch: patch, originalFile, content } = result;
  const hunks = Array.isArray(patch) ? patch : [];
  const isNew = originalFile === null || originalFile === undefined;
  if (hunks.length === 0) {
    const isWritten =
      isNew && result.type === 'create' && typeof content === 'string' && content.length <= LONGEST_PATCH;
    return isWritten ? [diffContent({ path, oldText: null, newText: content, lines: [1, 1] })] : [];
  }
  if (!hunks.every(isHunk)) return [];
  const length = hunks.reduce((sum, { lines }) => sum + lines.join('\n').length, 0);
  return length > LONGEST_PATCH ? [] : hunks.map((hunk) => hunkContent(path, hunk));
}

interface Hunk {
  readonly oldStart: number;
  readonly newStart: number;
  readonly lines: readonly string[];
}

function isHunk(hunk: unknown): hunk is Hunk {
  if (!isObject(hunk) || !Array.isArray(hunk.lines)) return false;
  const isPlaced = Number.isSafeInteger(hunk.oldStart) && Number.isSafeInteger(hunk.newStart);
  return isPlaced && hunk.lines.every((line) => typeof line === 'string');
}

function hunkContent(path: string, { oldStart, newStart, lines }: Hunk): object {
  // A line that begins with a backslash says that the file has no line end at its end.
  const side = (sign: string) =>
    lines
      .filter((line) => line.startsWith(' ') || line.startsWith(sign))
      .map((line) => `${line.slice(1)}\n`)
      .join('');
  const places = [Math.max(1, oldStart), Math.max(1, newStart)] as const;
  return diffContent({ path, oldText: side('-'), newText: side('+'), lines: places });
}
