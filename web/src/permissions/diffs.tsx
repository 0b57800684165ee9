import { useMemo } from 'react';
import { DiffView } from '../diff/diff-view.tsx';
import { diffOfTexts } from '../diff/model.ts';
import type { AskedDiff } from './asked.ts';

/** What would change, by file. Everything of it can be read: whoever approves a change must be able to. */
export function AskedDiffs({ diffs }: { diffs: readonly AskedDiff[] }) {
  return [...Map.groupBy(diffs, ({ path }) => path)].map(([path, ofFile]) => (
    <FileDiff key={path} path={path} diffs={ofFile} />
  ));
}

function FileDiff({ path, diffs }: { path: string; diffs: readonly AskedDiff[] }) {
  const key = JSON.stringify(diffs);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the question is read again with every event, and says the same
  const diff = useMemo(() => diffOfTexts(diffs), [key]);
  return <DiffView path={path} diff={diff} note={noteOf(diffs[0])} />;
}

function noteOf(diff: AskedDiff | undefined): string | null {
  if (diff?.oldText !== null) return null;
  return diff.lines === null ? 'the whole file; what it holds now is not known' : 'new file';
}
