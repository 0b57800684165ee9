import type { ToolPart } from '../../../src/core/turn/record.ts';
import { DiffView } from './diff-view.tsx';
import { changedFiles } from './tool-changes.ts';

/** The files that a tool has changed. Nothing if it changed none. */
export function ToolDiffs({ tool }: { tool: ToolPart }) {
  return changedFiles(tool).map(({ path, diff, note }) => <DiffView key={path} path={path} diff={diff} note={note} />);
}
