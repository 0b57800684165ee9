import type { Rewind } from '../../ports/agent.ts';
import type { SessionFile } from './session-file.ts';
import { leafOf } from './transcript/chain.ts';
import { appendLine } from './transcript/write.ts';

/** Versions that were seen to drop a failed prompt when resumed, and nothing else (test/agents/scenarios/api-errors.ts). */
const SEEN: ReadonlySet<string> = new Set(['2.1.325']);

export function canRewind(version: string): boolean {
  return SEEN.has(version);
}

/** Where an opened session stands that has gone back. */
export interface Rewound {
  readonly at: string;
  readonly drops: string;
  readonly position: string;
  /** Where its file stands until the next prompt is written: that still ends with the failed one. */
  readonly filePosition: string | null;
}

/**
 * Makes a transcript ready for going back; a string says why it cannot be. Claude itself only hangs the next prompt on the
 * earlier entry. Its note of the leaf (`last-prompt`) still names the failed turn then, and is believed by whatever resumes the
 * session next: a process that is killed before it has written another note would lose the new branch (seen with 2.1.325). So
 * the note is made here, before; until a prompt is sent, it changes nothing.
 */
export async function goBack(file: SessionFile, id: string, { position, drops }: Rewind): Promise<Rewound | string> {
  const at = leafOf(position);
  if (at === null || file.positionAt(at) !== position) return 'where it should go back to is not in its transcript';
  const unwritable = await appendLine(file.path, { type: 'last-prompt', leafUuid: at, sessionId: id });
  return unwritable ?? { at, drops, position, filePosition: await file.position() };
}
