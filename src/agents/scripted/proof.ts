import type { AgentEvent } from '../../ports/agent.ts';
import { findEntry, positionAt } from './storage.ts';

export interface Landing {
  /** The session's storage. */
  readonly file: string;
  /** The prompt's id, and the entry that the program says it came after. */
  readonly prompt: string;
  readonly parent: string | null;
  /** Where the prompt was to land; null: in an empty session. */
  readonly expected: string | null;
}

/** Looks in the session's own storage whether the prompt landed where it should have. */
export function proofOf({ file, prompt, parent, expected }: Landing): Extract<AgentEvent, { type: 'proof' }> {
  const refuted = (detail: string) => ({ type: 'proof', proof: 'refuted', detail }) as const;
  const entry = findEntry(file, prompt);
  if (entry === null) return refuted('the prompt is not in the session’s storage');
  if (entry.parent !== parent) return refuted('the agent and its storage disagree on what came before the prompt');
  const landed = positionAt(entry.n - 1, entry.parent);
  const wanted = expected ?? positionAt(0, null);
  if (landed !== wanted) return refuted(`the prompt landed at ${landed}, not at ${wanted}`);
  return { type: 'proof', proof: 'proved', detail: `the prompt landed at ${landed}` };
}
