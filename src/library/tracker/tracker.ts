import { parsePrompt, titleOf } from '../../core/content.ts';
import { ThroughlineError } from '../../core/errors.ts';
import { checkName } from '../../core/names.ts';
import type { PublicLock } from '../../core/public/conversation.ts';
import { hasEnded } from '../../core/turn.ts';
import { parseUsage, type Usage } from '../../core/usage.ts';
import type { TrackerParts } from './locks.ts';
import { TrackerLocks } from './locks.ts';
import { type Asked, acceptRequest } from './new-requests.ts';
import { type Desk, endRequest, giveSession, holdRequest } from './open-requests.ts';
import {
  notTracked,
  type Tracked,
  type TrackedRequest,
  TrackedRequests,
  type TrackedSession,
  viewOf,
} from './tracked-requests.ts';
import type { Outcome } from './tracked-turn.ts';

export interface CompletedRequest {
  readonly prompt?: string;
  readonly reply?: string;
  readonly usage?: Partial<Usage>;
}

/*
 * For programs that talk to an agent themselves: the same store and the same rules, without an adapter.
 *
 *   trackRequest ──▶ pending ──▶ updateRequestSession ──▶ active ──▶ completeRequest | failRequest
 *
 * `agentId` is the key of a conversation, whose lease is the lock: one request at a time. A request is a turn, and a session
 * exists from the moment when the agent has named it; there is none named null. Workers never claim these conversations.
 * Every verb checks what it is given before it changes anything.
 */
export class ConversationTracker {
  readonly #desk: Desk;
  readonly #requests: TrackedRequests;

  constructor(parts: TrackerParts, owner: string) {
    const agent = trackedAgent(owner);
    this.#requests = new TrackedRequests(parts.store, owner);
    this.#desk = { parts, owner, agent, locks: new TrackerLocks(parts, agent), requests: this.#requests };
  }

  /**
   * Records a request before it goes out, and takes the conversation's lock. `sessionId` is the session that the agent will
   * be asked to go on with; null: it starts one. The same request again gives the same answer, the same id with anything else
   * is a `conflict`; so is a second request while the first is open, and it is told which one that is.
   */
  async trackRequest(requestId: string, agentId: string | null, sessionId: string | null): Promise<TrackedRequest> {
    checkName(requestId, 'request id');
    if (agentId !== null) checkName(agentId, 'agent id');
    if (sessionId !== null) checkName(sessionId, 'session id');
    const asked: Asked = { requestId, agentId, sessionId };
    const before = await this.#requests.find(requestId);
    if (before !== null) return sameAgain(before, asked);
    try {
      await acceptRequest(this.#desk, asked);
    } catch (error) {
      // It may have come twice at once: whichever was first is the answer to both.
      const first = isConflict(error) ? await this.#requests.find(requestId) : null;
      if (first === null || hasEnded(first.turn.state)) throw error;
      return sameAgain(first, asked);
    }
    return this.#view(requestId);
  }

  /** The agent has named its session: the mapping of its agent moves now. The same session again changes nothing. */
  async updateRequestSession(requestId: string, sessionId: string): Promise<TrackedRequest> {
    checkName(sessionId, 'session id');
    const open = await holdRequest(this.#desk, requestId);
    if (open.turn.sessionId !== sessionId) {
      await this.#requests.refuseForeign(sessionId, open.turn.conversation);
      await giveSession(this.#desk, open, sessionId);
    }
    return this.#view(requestId);
  }

  /** The agent has answered: the turn ends, its session's watermark moves, the lock is free. */
  async completeRequest(requestId: string, done: CompletedRequest = {}): Promise<TrackedRequest> {
    const { prompt, reply, usage } = done;
    if (prompt !== undefined) parsePrompt(prompt);
    if (reply !== undefined) checkText(reply, 'reply');
    if (usage !== undefined) parseUsage(usage);
    return this.#end(requestId, { outcome: 'completed', failure: null, ...done });
  }

  /** The request came to nothing: no watermark moves, the lock is free. */
  async failRequest(requestId: string, reason = 'The request failed.'): Promise<TrackedRequest> {
    checkText(reason, 'reason');
    return this.#end(requestId, { outcome: 'failed', failure: { code: 'agent_failed', message: reason } });
  }

  /** Null: no such request is tracked. */
  getRequest(requestId: string): Promise<TrackedRequest | null> {
    return this.#requests.view(requestId);
  }

  /** The session that the agent's next request goes on with; null: it has none yet. */
  async getAgentSession(agentId: string): Promise<string | null> {
    const conversation = await this.#requests.conversation(agentId);
    const [newest] = conversation === null ? [] : await this.#requests.sessions(conversation.id, 1);
    return newest?.id ?? null;
  }

  getSession(sessionId: string): Promise<TrackedSession | null> {
    return this.#requests.sessionView(sessionId);
  }

  /** Every session that the agent has lived in, oldest first. */
  async sessionHistory(agentId: string): Promise<string[]> {
    const conversation = await this.#requests.conversation(agentId);
    const sessions = conversation === null ? [] : await this.#requests.sessions(conversation.id);
    return sessions.map((session) => session.id).reverse();
  }

  /** Who holds the agent's conversation; null: nobody. A dead holder's lock is free at once, a silent one's when it expires. */
  async lockStatus(agentId: string): Promise<PublicLock | null> {
    const conversation = await this.#requests.conversation(agentId);
    return conversation === null ? null : this.#requests.lock(conversation.id);
  }

  /** Gives back the locks. Requests still open are interrupted by whoever asks next. */
  close(): Promise<void> {
    return this.#desk.locks.close();
  }

  /** The same end again is the end of then. */
  async #end(requestId: string, outcome: Outcome): Promise<TrackedRequest> {
    const before = await this.#requests.find(requestId);
    if (before !== null && viewOf(before).status === outcome.outcome) return viewOf(before);
    const open = await holdRequest(this.#desk, requestId);
    await endRequest(this.#desk, open, outcome);
    await this.#desk.locks.release(open.held);
    await this.#name(open.turn.conversation, outcome.prompt);
    return this.#view(requestId);
  }

  /** The first prompt names a conversation that nobody has named. */
  async #name(conversation: string, prompt: string | undefined): Promise<void> {
    const title = prompt === undefined ? '' : titleOf(parsePrompt(prompt));
    const { parts, owner } = this.#desk;
    if (title !== '') await parts.store.setTitle(owner, conversation, title, 'prompt');
  }

  async #view(requestId: string): Promise<TrackedRequest> {
    const request = await this.#requests.view(requestId);
    if (request === null) throw notTracked(requestId);
    return request;
  }
}

/**
 * The agent of tracked turns and sessions: whichever the program uses, we know only that it is none of ours. One for each
 * owner, because the store lets a session be used by one conversation, and two owners may both have a session "1".
 */
function trackedAgent(owner: string): string {
  return `tracked:${owner}`;
}

/** R3: the same request is the same in all that was asked for. */
function sameAgain(found: Tracked, { agentId, sessionId }: Asked): TrackedRequest {
  const request = viewOf(found);
  const { requestId, options, conversation } = found.turn;
  if (request.agentId !== agentId) {
    const whose = `belongs to "${request.agentId ?? conversation}"`;
    throw new ThroughlineError('conflict', `The request id "${requestId}" ${whose}.`, { hint: NEW_ID });
  }
  const before = options.session ?? null;
  if (before === sessionId) return request;
  const session = before === null ? 'a new session' : `the session "${before}"`;
  throw new ThroughlineError('conflict', `The request "${requestId}" was tracked for ${session}.`, { hint: NEW_ID });
}

const NEW_ID = 'Use a new request id for a new request.';

function isConflict(error: unknown): boolean {
  return error instanceof ThroughlineError && error.code === 'conflict';
}

function checkText(value: unknown, what: string): void {
  if (typeof value !== 'string') throw new ThroughlineError('invalid', `A ${what} must be a text.`);
}
