import type { SessionHistory } from '../../core/restore/adopted.ts';
import type { Prompt } from '../../core/turn/content.ts';
import type { PermissionMode, Turn, TurnOptions } from '../../core/turn/turn.ts';
import type { NewConversation } from './conversations.ts';
import type { NewSession } from './sessions.ts';

/** Turns as everybody may write and read them: this needs the lock of the row, not the lease. */
export interface TurnStore {
  /**
   * Accepts a turn (R3). The same `requestId` and body again gives the same turn; another body is a `conflict`. With `adopts`, the
   * turns of that session come before it in the history, in the same transaction: `conflict` while another turn is open,
   * `refused` when the session belongs to another conversation. One that the conversation has already is not imported again.
   * A turn that is not accepted creates no conversation either.
   */
  enqueue(owner: string, turn: NewTurn): Promise<Enqueued>;
  /** The agent that `enqueue` would give the turn. Throws as it does. */
  agentFor(owner: string, turn: AskedAgent): Promise<string>;
  /** Ends a queued turn at once; asks a running one to stop; leaves an ended one as it is. Returns the turn as it now is. */
  requestCancel(owner: string, turn: string, by: string): Promise<Turn>;
  findTurn(owner: string, turn: string): Promise<Turn | null>;
  /** By the caller's idempotency key. */
  findRequest(owner: string, requestId: string): Promise<Turn | null>;
  /** By number, rising, a page. */
  turns(owner: string, conversation: string, page: { after: number; limit: number }): Promise<Turn[]>;
}

export interface AskedAgent {
  readonly conversation: string;
  /**
   * The agent that the caller named; null: that of the previous turn, else the conversation's, else `defaultAgent`. When all are
   * null, the turn is not accepted: `invalid`, or `agent_unavailable` when no agent is installed.
   */
  readonly agent: string | null;
  readonly defaultAgent: string | null;
  /** The configured agents: a turn that needs another is `agent_unavailable`, and not accepted. Left out: any. */
  readonly agents?: readonly string[];
}

export interface NewTurn extends AskedAgent {
  readonly id: string;
  /** Created in the same commit, unless the owner has one with its key by now: then the turn is for that one. */
  readonly creates?: NewConversation;
  readonly requestId: string | null;
  /** Empty: its program may give it at the end (a tracker). */
  readonly prompt: Prompt;
  readonly options: TurnOptions;
  /** How questions are handled when `options` do not say it: fixed here, as the agent is. Left out: whoever runs the turn decides. */
  readonly permissions?: PermissionMode;
  readonly retryOf: string | null;
  /** The session that it names, and that the conversation has not used yet. Left out: there is none, or it could not be read. */
  readonly adopts?: AdoptedSession;
}

/** A native session with its own history, to be taken into a conversation. */
export interface AdoptedSession extends Pick<NewSession, 'ref' | 'id' | 'agent'> {
  readonly storage: string;
  readonly history: SessionHistory;
}

export interface Enqueued {
  readonly turn: Turn;
  /** The number of its `turn.queued`. */
  readonly seq: number;
  /** The same request was accepted before: this is its turn. */
  readonly duplicate: boolean;
}
