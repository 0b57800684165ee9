import { diffText, type ToolPart } from '../../../src/core/turn/record.ts';
import type { RecordedDiff } from '../../../src/core/turn/reported-diff.ts';
import { type Diff, diffOfTexts } from './model.ts';

/** What a tool did to one file. */
export interface FileChange {
  readonly path: string;
  readonly diff: Diff;
  /** What is to be known beside the counts; null: nothing. */
  readonly note: string | null;
}

const NONE: readonly FileChange[] = [];
/** By the diffs of a tool, so that a view that is drawn again has the same rows. */
const known = new WeakMap<readonly RecordedDiff[], readonly FileChange[]>();

/** The files that a tool reported to have changed, in their order. Text that only looks like a diff is none. */
export function changedFiles({ diffs }: ToolPart): readonly FileChange[] {
  if (diffs === undefined) return NONE;
  const before = known.get(diffs);
  if (before !== undefined) return before;
  const byPath = Map.groupBy(diffs, ({ path }) => path);
  const files = [...byPath].map(([path, all]) => ({ path, diff: diffOfTexts(all), note: noteOf(all) }));
  known.set(diffs, files);
  return files;
}

function noteOf(diffs: readonly RecordedDiff[]): string | null {
  const isNew = diffs[0]?.oldText === null && diffs[0].lines !== null;
  if (diffs.some(({ cut }) => cut))
    return isNew ? 'new file; only its beginning was kept' : 'too long to be kept as a whole';
  return isNew ? 'new file' : null;
}

/** How many lines a tool has added and removed; null: none, or not all of them are known. */
export function changedLines(tool: ToolPart): Pick<Diff, 'added' | 'removed'> | null {
  const files = changedFiles(tool);
  if (files.length === 0 || tool.diffs?.some(({ cut }) => cut)) return null;
  const sum = (which: 'added' | 'removed') => files.reduce((total, { diff }) => total + diff[which], 0);
  return { added: sum('added'), removed: sum('removed') };
}

/** What a tool printed, without the lines of its diffs; null: nothing. */
export function outputBeside({ output, diffs = [] }: ToolPart): string | null {
  if (output === null) return null;
  let rest = output;
  for (const diff of diffs) {
    const text = diffText(diff);
    const at = diff.cut ? -1 : rest.indexOf(text);
    // The text of a long diff is not whole in the output either: it stays there.
    if (at !== -1) rest = rest.slice(0, at) + rest.slice(at + text.length).replace(/^\n/, '');
  }
  return rest.trim() === '' ? null : rest;
}
