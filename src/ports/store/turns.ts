import type { CheckedRange } from '../../core/input/arguments.ts';
import type { PerDay } from '../../core/limits/spending.ts';
import type { TurnOutline } from '../../core/public/turn.ts';
import type { QueueChange } from '../../core/queue.ts';
import type { SessionHistory } from '../../core/restore/adopted.ts';
import type { ToldPart } from '../../core/restore/told.ts';
import type { Prompt } from '../../core/turn/content.ts';
import type { PermissionMode, Sent, Turn, TurnOptions } from '../../core/turn/turn.ts';
import type { NewConversation } from './conversations.ts';
import type { NewSession } from './sessions.ts';

/** What everybody may do with turns. This needs the lock of the row, and not the lease. */
export interface TurnStore {
  /**
   * Accepts a turn (R3). The same `requestId` and body again gives the same turn; another body is a `conflict`. With `adopts`, the
   * turns of that session come before it in the history, in the same transaction: `conflict` while another turn is open,
   * `refused` when the session belongs to another conversation. A session that the conversation already uses is not imported again.
   * A turn that is not accepted creates no conversation either.
   */
  enqueue(owner: string, turn: NewTurn): Promise<Enqueued>;
  /** The agent that `enqueue` would give the turn. Throws as it does. */
  agentFor(owner: string, turn: AskedAgent): Promise<string>;
  /** Ends a queued turn at once; asks a running one to stop; leaves an ended one as it is. Returns the turn as it now is. */
  requestCancel(owner: string, turn: string, by: string): Promise<Turn>;
  /** The queued turns, by number, rising, a page. */
  queued(owner: string, conversation: string, page: { after: number; limit: number }): Promise<Turn[]>;
  /**
   * Changes the queue. `changes` names every queued turn, in the wanted order. Dropped turns end as cancelled. As few of the others as possible
   * are replaced: each ends as cancelled, too, and a new turn is accepted in its place, with its options and its prompt or the new one. All or
   * nothing: `conflict` when other turns are queued than those named, `not_found` for a turn that is not of this conversation, `refused` when a
   * turn of a task would end. The same `requestId` and changes again give the same result and change nothing; other changes are a `conflict`.
   */
  requeue(owner: string, request: Requeue): Promise<Requeued>;
  findTurn(owner: string, turn: string): Promise<Turn | null>;
  /** By the caller's idempotency key. */
  findRequest(owner: string, requestId: string): Promise<Turn | null>;
  /**
   * Turns whose answers have to be delivered and were not yet, whether they have ended or not; in the order in which they were accepted, a
   * page. `after`: the last turn of the previous page; `not_found` when it is gone.
   */
  pending(owner: string, page: { after?: string; limit: number }): Promise<PendingTurn[]>;
  /**
   * Records that the answer was delivered: the turn is not pending any more. Returns the turn, also if it was delivered before. Throws
   * `not_found`; `conflict` when it has not ended; `invalid` when its answer need not be delivered.
   */
  setDelivered(owner: string, turn: string): Promise<Turn>;
  /**
   * What the session of a turn was told in an attempt; left out: in the last one that was sent. Null: none was sent. `parts` null: it was not
   * kept. Throws `storage_damaged` when it does not match its hash.
   */
  told(owner: string, turn: string, attempt?: number): Promise<StoredTold | null>;
  /** As `turns`, without reading prompts and answers. */
  outline(owner: string, conversation: string, page: CheckedRange): Promise<TurnOutline[]>;
  /** By number, rising, a page: after a number, or the last ones before one. */
  turns(owner: string, conversation: string, page: CheckedRange): Promise<Turn[]>;
}

export interface Requeue {
  readonly conversation: string;
  /** `id`: for the turn that replaces it, if one does. */
  readonly changes: readonly (QueueChange & { readonly id: string })[];
  /** Not shared with the request ids of turns: a turn may have the same one. Null: none given. */
  readonly requestId: string | null;
  readonly by: string;
}

/**
 * The result of a change of the queue.
 *
 * @example
 * const { queue, cancelled } = await chat.requeue((await chat.queue()).map(({ id }) => ({ turn: id })).toReversed());
 * for (const { turnId, n, replaces } of queue) console.log(n, turnId, replaces ?? 'as before');
 * for (const { turnId, replacedBy } of cancelled) console.log(turnId, 'is now', replacedBy ?? 'dropped');
 */
export interface Requeued {
  /** The new queue, in the order in which the turns run. `replaces`: the turn whose place it took; null: it stayed. */
  readonly queue: readonly { readonly turnId: string; readonly n: number; readonly replaces: string | null }[];
  /** The turns that the change ended. `replacedBy`: the turn that took its place; null: it was dropped. */
  readonly cancelled: readonly { readonly turnId: string; readonly n: number; readonly replacedBy: string | null }[];
  /** The same request was carried out before: this is its result. */
  readonly duplicate: boolean;
}

export type PendingTurn = Pick<Enqueued, 'turn' | 'seq'>;

export interface StoredTold {
  readonly sent: Sent;
  readonly sessionId: string | null;
  readonly parts: readonly ToldPart[] | null;
}

export interface AskedAgent {
  readonly conversation: string;
  /**
   * The agent that the caller named; null: that of the previous turn, otherwise the conversation's, otherwise `defaultAgent`. If all are
   * null, the turn is not accepted: `invalid`, or `agent_unavailable` when no agent is installed.
   */
  readonly agent: string | null;
  readonly defaultAgent: string | null;
  /** The configured agents: a turn for another one is not accepted (`agent_unavailable`). Left out: any. */
  readonly agents?: readonly string[];
}

export interface NewTurn extends AskedAgent {
  readonly id: string;
  /** Creates this conversation in the same commit, unless the owner has one with its key by now: then the turn is for that one. */
  readonly creates?: NewConversation;
  /** With `creates`: throws `conflict` if the owner has a conversation with that key by now. */
  readonly isFirst?: boolean;
  readonly requestId: string | null;
  /** Empty: its program may give it at the end (a tracker). */
  readonly prompt: Prompt;
  readonly options: TurnOptions;
  /** How questions are handled if `options` do not set it; fixed here, as the agent is. Left out: the worker that runs the turn decides. */
  readonly permissions?: PermissionMode;
  readonly retryOf: string | null;
  /**
   * What the settings allow to be spent on a day. If that, or the conversation's own limit, is reached, the turn is refused with
   * `over_budget`. Left out: no limit is checked. Not part of the request.
   */
  readonly perDay?: PerDay;
  /** Who asked for it, as recorded. Left out: the owner. Not part of the request: a repeat by somebody else returns the same turn. */
  readonly by?: string;
  /** The session that it names, if the conversation has not used it yet. Left out: there is none, or it could not be read. */
  readonly adopts?: AdoptedSession;
}

/** A native session with its own history, to be adopted by a conversation. */
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
