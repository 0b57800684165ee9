import type { OrUndefined } from '../core/input/arguments.ts';
import type { PublicLock } from '../core/public/conversation.ts';
import type { Prompt } from '../core/turn/content.ts';
import type { Usage } from '../core/turn/usage.ts';

/**
 * What is known of a request before it is sent.
 *
 * @example
 * const tracked = await tl.tracker().trackRequest('req1', 'agent456', null, { prompt: 'Hello' });
 */
export interface NewRequest {
  /** What is about to be sent. Recorded with the request, so that it is known even if the program dies. */
  readonly prompt?: Prompt | string | undefined;
  /**
   * Continue in the agent's current session, as of when the lock is taken, because the request before may change it until then. The argument
   * `sessionId` has to be null; the answer has the session as `sessionId` (null: the agent has none yet).
   */
  readonly current?: boolean | undefined;
  /** How long to wait while another request of the agent is open. Left out: 0, which throws `conflict` at once. `Infinity`: until aborted. */
  readonly waitMs?: number | undefined;
  /** When it aborts, the wait ends with `cancelled`, and nothing is recorded. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The result of a request.
 *
 * @example
 * await tl.tracker().completeRequest('req1', { reply: 'Hello.', usage: { inputTokens: 5 } });
 */
export interface CompletedRequest {
  /** The prompt, unless it was given before; a different one is a `conflict`. */
  readonly prompt?: Prompt | string | undefined;
  readonly reply?: string | undefined;
  readonly usage?: OrUndefined<Partial<Usage>> | undefined;
}

/**
 * The result of a failed request. Everything that is given is recorded.
 *
 * @example
 * await tl.tracker().failRequest('req1', { reason: 'The agent did not start.' });
 */
export interface FailedRequest extends CompletedRequest {
  /** Why it failed, for people. */
  readonly reason?: string | undefined;
}

/**
 * A tracked request. `sessionId` null: the agent has not named its session yet.
 *
 * @example
 * const { status, sessionId } = await tl.tracker().updateRequestSession('req1', 'abc789');
 * console.log(status, sessionId);
 */
export interface TrackedRequest {
  readonly requestId: string;
  readonly agentId: string | null;
  readonly sessionId: string | null;
  /** Null: not given yet. */
  readonly prompt: Prompt | null;
  readonly status: 'pending' | 'active' | 'completed' | 'failed';
  readonly createdAt: number;
  /** Who holds its conversation; null: nobody holds it, or the request has ended. */
  readonly lock: PublicLock | null;
}

/**
 * A session of an agent that the caller runs.
 *
 * @example
 * console.log(await tl.tracker().getAgentSession('agent456'), await tl.tracker().sessionHistory('agent456'));
 */
export interface TrackedSession {
  readonly sessionId: string;
  readonly agentId: string | null;
  readonly lastActivity: number;
  readonly requestCount: number;
  readonly lock: PublicLock | null;
}

/**
 * For programs that run an agent themselves: the same store and rules, without an adapter.
 *
 *     trackRequest ──▶ pending ──▶ updateRequestSession ──▶ active ──▶ completeRequest | failRequest
 *
 * `agentId` is the key of a conversation. Its lease is the lock: one request at a time, renewed while this program lives. A request is
 * a turn. A session exists once the agent has named it. Workers never claim these conversations. Every verb checks its arguments
 * before it changes anything.
 *
 * @example
 * const prompt = 'Hello';
 * const callAgent = async (text: string, resume: string | null) => ({ sessionId: resume ?? 'abc789', reply: text, usage: {} });
 *
 * const tracker = tl.tracker();
 * const { sessionId: resume } = await tracker.trackRequest('req1', 'agent456', null, { current: true, prompt, waitMs: 60_000 });
 * const { sessionId, reply, usage } = await callAgent(prompt, resume);
 * await tracker.updateRequestSession('req1', sessionId);
 * await tracker.completeRequest('req1', { reply, usage });
 */
export interface ConversationTracker {
  /**
   * Records a request before it is sent, and takes the conversation's lock. `sessionId`: the session that the agent will continue; null: it
   * starts a new one. If it is not the agent's current session, the request stays pending until the agent names a session. Repeating a request gives the same answer. The same id with other arguments is a `conflict`. So is a request while
   * another one of the agent is still open after `waitMs`; the error names that one.
   */
  trackRequest(
    requestId: string,
    agentId: string | null,
    sessionId: string | null,
    options?: NewRequest,
  ): Promise<TrackedRequest>;
  /**
   * The agent has named its session, which is the agent's current one from now on; the one before is dormant. Call it also if the agent took
   * the id that was passed to `trackRequest`. Repeating it changes nothing.
   */
  updateRequestSession(requestId: string, sessionId: string): Promise<TrackedRequest>;
  /** The agent has answered: ends the turn, moves its session's watermark and frees the lock. Repeating it returns the first end. */
  completeRequest(requestId: string, done?: CompletedRequest): Promise<TrackedRequest>;
  /** The request failed: ends the turn and frees the lock; no watermark moves. Repeating it returns the first end. */
  failRequest(requestId: string, done?: FailedRequest): Promise<TrackedRequest>;
  /** Null: no such request is tracked. */
  getRequest(requestId: string): Promise<TrackedRequest | null>;
  /** The agent's current session; null: it has none yet. */
  getAgentSession(agentId: string): Promise<string | null>;
  getSession(sessionId: string): Promise<TrackedSession | null>;
  /** Every session that the agent has named, oldest first. */
  sessionHistory(agentId: string): Promise<string[]>;
  /** Who holds the lock of the agent's conversation; null: nobody. */
  lockStatus(agentId: string): Promise<PublicLock | null>;
  /** Releases the locks, and stops waiting for others. The next request for an agent interrupts its open one. */
  close(): Promise<void>;
}

/** Makes trackers for owners. */
export interface Trackers {
  /** Its locks belong to this program. */
  tracker(owner: string): ConversationTracker;
}

/**
 * Makes trackers for programs that reach the store through a server. The server cannot see whether such a program is alive, so the program
 * names itself in every call (`holder`) and renews its locks. A lock outlives the server, and is free when it expires.
 */
export interface ClientTrackers {
  clientTracker(owner: string, holder: string): ClientTracker;
}

export interface ClientTracker extends Omit<ConversationTracker, 'close'> {
  /**
   * Prolongs the lock of an open request. Takes it again if it has expired and nobody else has it. Throws `conflict` if another program has
   * it, or if the request has ended.
   */
  renewRequest(requestId: string): Promise<TrackedRequest>;
  /** Frees the lock of a request, and leaves it open: the next request of its agent interrupts it. Does nothing without the lock. */
  releaseRequest(requestId: string): Promise<TrackedRequest>;
}
