import type { Rewind } from '../../../ports/agent.ts';
import { leafOf } from '../transcript/chain.ts';
import { appendLine } from '../transcript/write.ts';
import type { SessionFile } from './session-file.ts';

/** Versions that were seen to drop a failed prompt on resume, and nothing else (test/agents/claude/scenarios/api-errors.ts). */
const TESTED: ReadonlySet<string> = new Set(['2.1.325']);

export function canRewind(version: string): boolean {
  return TESTED.has(version);
}

/** A session that was opened as it was before a failed prompt. */
export interface Rewound {
  readonly at: string;
  readonly drops: string;
  readonly position: string;
  /** The position of its file until the next prompt is written: the file still ends with the failed one. */
  readonly filePosition: string | null;
}

/**
 * Prepares a transcript for a rewind. Returns a string if that is not possible: the reason. Claude itself only appends the next prompt to
 * the earlier entry. Its note of the leaf (`last-prompt`) then still names the failed turn, and the next resume follows the note. If the
 * process is killed before it writes another note, the new branch is lost (seen with 2.1.325). So we write the note first. It has no
 * effect until a prompt is sent.
 */
export async function prepareRewind(
  file: SessionFile,
  id: string,
  { position, drops }: Rewind,
): Promise<Rewound | string> {
  const at = leafOf(position);
  if (at === null || file.positionAt(at) !== position) return 'the position to rewind to is not in its transcript';
  const unwritable = await appendLine(file.transcript, { type: 'last-prompt', leafUuid: at, sessionId: id });
  return unwritable ?? { at, drops, position, filePosition: await file.position() };
}
