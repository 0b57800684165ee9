import type { SandboxProcess } from '../process.ts';
import type { Usage } from '../turn/usage.ts';
import type { Omissions } from './receipt.ts';

/*
 * A session is one agent's own native context: a cache of the conversation up to its watermark.
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

/** A session in one of these states is never used again. */
export type UnusableState = 'diverged' | 'lost' | 'closed';

/** What is recorded of every session that is put aside: no process holds it. */
export function aside<S extends Exclude<SessionState, 'live'>>(
  state: S,
): { readonly state: S; readonly process: null } {
  return { state, process: null };
}

/** The state of a session whose process has ended. `reopens`: its agent can open it again. `unsettled`: a turn in it was cut off. */
export function stateWithoutProcess({ reopens, unsettled }: { reopens: boolean; unsettled: boolean }) {
  if (!reopens) return 'lost';
  return unsettled ? 'unsettled' : 'dormant';
}

/**
 * How full the context of a session is, in tokens.
 *
 * @example
 * const [{ context } = { context: null }] = await chat.sessions();
 * if (context) console.log(`${Math.round((100 * context.used) / context.size)} % of the context`);
 */
export interface ContextUse {
  readonly used: number;
  /** Of the model's window. */
  readonly size: number;
}

/** The fields of a session that are shown as they are stored. */
export interface ShownSession {
  /** The agent's id of it: what `session` of a prompt takes, and what `sessionId` is elsewhere. */
  readonly id: string;
  readonly agent: string;
  readonly origin: SessionOrigin;
  /** The number of the last turn that it counts as having. Only a completed turn moves it (R9). */
  readonly watermark: number;
  /** How many turns up to the watermark it was never told, because a budget left them out. */
  readonly dropped: number;
  /** The number of the last turn that it has only as its agent's own summary; 0: none. */
  readonly condensedTo: number;
  readonly state: SessionState;
  /** How many turns it was given. */
  readonly turns: number;
  readonly usage: Usage;
  /** How full its context was when its agent last reported it, at the end of a turn; null: it has not. */
  readonly context: ContextUse | null;
  readonly openedAt: number;
  readonly usedAt: number;
}

/** Its id is ours only for an agent that takes an assigned one (R1). */
export interface Session extends ShownSession {
  /** Our own reference; people are shown the agent's id. */
  readonly ref: string;
  readonly conversation: string;
  /** Our reference of the session it came from; null: none. */
  readonly parent: string | null;
  /** What it was told only in part. */
  readonly omitted: Omissions;
  /** How far it has got in the agent's own storage after the last turn; opaque; null: not readable. */
  readonly position: string | null;
  /** How many bytes of the agent's own transcript file we have a copy of; 0: none. */
  readonly mirrored: number;
  /** A note of its adapter, given back to it when the session is opened again; opaque; null: none. */
  readonly memo: string | null;
  /** Its history before it was adopted could not be read. */
  readonly unread: boolean;
  /** The process that holds it; null: none does. */
  readonly process: SandboxProcess | null;
}

export function isUsable(session: Session): boolean {
  return USABLE_SESSION_STATES.includes(session.state);
}
