import type { SandboxProcess } from '../process.ts';
import type { Usage } from '../turn/usage.ts';
import type { Omissions } from './receipt.ts';

/*
 * A session is one agent's own native context: a cache of the conversation, told up to its watermark.
 *
 *   live ◀──▶ dormant          a process holds it / only the agent's storage does
 *     └─▶ unsettled            it saw a turn that did not complete; it is told that turn's record again with the next prompt
 *   diverged                   somebody else used it: its position is not the recorded one (R10). Never used again
 *   lost                       the agent no longer has it, or it was shown to lack what it should know. Never used again
 *   closed                     we ended it, or it came from elsewhere for the record only. Never used again
 */
export const SESSION_STATES = ['live', 'dormant', 'unsettled', 'diverged', 'lost', 'closed'] as const;
export type SessionState = (typeof SESSION_STATES)[number];

export const USABLE_SESSION_STATES: readonly SessionState[] = ['live', 'dormant', 'unsettled'];

export const SESSION_ORIGINS = ['new', 'rotated', 'rehydrated', 'adopted'] as const;
export type SessionOrigin = (typeof SESSION_ORIGINS)[number];

export interface Session {
  /** Our own reference; people are shown the agent's id. */
  readonly ref: string;
  /** The agent's id. Ours only for an agent that takes an assigned one (R1). */
  readonly id: string;
  readonly conversation: string;
  readonly agent: string;
  readonly origin: SessionOrigin;
  /** Our reference of the session it came from; null: none. */
  readonly parent: string | null;
  /** The last turn it was told (R9). */
  readonly watermark: number;
  /** How many turns of the history up to the watermark it was never told, because a budget left them out. */
  readonly dropped: number;
  /** What it was told of the others only in part. */
  readonly omitted: Omissions;
  /** The last turn that it has only as its agent's own summary; 0: none. All that it was told up to there is condensed. */
  readonly condensedTo: number;
  readonly state: SessionState;
  /** Where the agent's own storage stood after the last turn; opaque; null: not readable. */
  readonly position: string | null;
  /** How many bytes of the agent's own transcript file we have a copy of; 0: none. */
  readonly mirrored: number;
  /** A note of its adapter, given back to it when the session is opened again; opaque; null: none. */
  readonly memo: string | null;
  /** What it knew before it was adopted could not be read. */
  readonly unread: boolean;
  /** The process that holds it; null: none does. */
  readonly process: SandboxProcess | null;
  readonly turns: number;
  readonly usage: Usage;
  readonly openedAt: number;
  readonly usedAt: number;
}

export function isUsable(session: Session): boolean {
  return USABLE_SESSION_STATES.includes(session.state);
}
