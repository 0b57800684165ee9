import { ThroughlineError } from '../../core/errors.ts';
import { checkOptions, given, type OptionNames } from '../../core/input/arguments.ts';
import { checkName } from '../../core/input/names.ts';
import type { PublicLock } from '../../core/public/conversation.ts';
import { type Prompt, parsePrompt, titleOf } from '../../core/turn/content.ts';
import { hasEnded } from '../../core/turn/turn.ts';
import { parseUsage, type Usage } from '../../core/turn/usage.ts';
import { TrackerLocks, type TrackerParts } from './locks.ts';
import { type Asked, acceptRequest } from './new-requests.ts';
import { endRequest, giveSession, holdRequest, type TrackerContext } from './open-requests.ts';
import {
  notTracked,
  type Tracked,
  type TrackedRequest,
  TrackedRequests,
  type TrackedSession,
  viewOf,
} from './tracked-requests.ts';
import type { Outcome } from './tracked-turn.ts';

export interface NewRequest {
  /** What is about to be sent. Recorded with the request, it survives whatever happens to its program. */
  readonly prompt?: Prompt | string;
}

export interface CompletedRequest {
  /** Unless it was given before; another one than that is a `conflict`. */
  readonly prompt?: Prompt | string;
  readonly reply?: string;
  readonly usage?: Partial<Usage>;
}

/*
 * For programs that drive an agent themselves: the same store and rules, without an adapter.
 *
 *   trackRequest ──▶ pending ──▶ updateRequestSession ──▶ active ──▶ completeRequest | failRequest
 *
 * `agentId` is the key of a conversation. Its lease is the lock: one request at a time. A request is a turn. A session exists once
 * the agent has named it. Workers never claim these conversations. Every verb checks its arguments before it changes anything.
 */
export class ConversationTracker {
  readonly #context: TrackerContext;
  readonly #requests: TrackedRequests;

  constructor(parts: TrackerParts, owner: string) {
    // The real agent is not known here. One name for each owner, because a session belongs to one conversation, and two owners
    // may both have a session "1".
    const agent = `tracked:${owner}`;
    this.#requests = new TrackedRequests(parts.store, owner);
    this.#context = { parts, owner, agent, locks: new TrackerLocks(parts, agent), requests: this.#requests };
  }

  /**
   * Records a request before it is sent, and takes the conversation's lock. `sessionId`: the session that the agent will continue;
   * null: it starts a new one. Repeating a request gives the same answer. The same id with other arguments is a `conflict`, and so
   * is a second request while the first is open; the error names the first.
   */
  async trackRequest(
    requestId: string,
    agentId: string | null,
    sessionId: string | null,
    options: NewRequest = {},
  ): Promise<TrackedRequest> {
    checkOptions(options, NEW_REQUEST, 'A request');
    checkName(requestId, 'request id');
    if (agentId !== null) checkName(agentId, 'agent id');
    if (sessionId !== null) checkName(sessionId, 'session id');
    const prompt = options.prompt === undefined ? [] : parsePrompt(options.prompt);
    const asked: Asked = { requestId, agentId, sessionId, prompt };
    const before = await this.#requests.find(requestId);
    if (before !== null) return sameAgain(before, asked);
    try {
      await acceptRequest(this.#context, asked);
    } catch (error) {
      // It may have come twice at once: the first one is the answer to both.
      const first = isConflict(error) ? await this.#requests.find(requestId) : null;
      if (first === null || hasEnded(first.turn.state)) throw error;
      return sameAgain(first, asked);
    }
    return this.#view(requestId);
  }

  /** The agent has named its session, which is the agent's current one from now on. Repeating it changes nothing. */
  async updateRequestSession(requestId: string, sessionId: string): Promise<TrackedRequest> {
    checkName(sessionId, 'session id');
    const open = await holdRequest(this.#context, requestId);
    if (open.turn.sessionId !== sessionId) {
      await this.#requests.refuseForeign(sessionId, open.turn.conversation);
      await giveSession(this.#context, open, sessionId);
    }
    return this.#view(requestId);
  }

  /** The agent has answered: ends the turn, moves its session's watermark and frees the lock. */
  async completeRequest(requestId: string, done: CompletedRequest = {}): Promise<TrackedRequest> {
    const { prompt, reply, usage } = done;
    if (reply !== undefined) checkText(reply, 'reply');
    if (usage !== undefined) parseUsage(usage);
    const said = prompt === undefined ? {} : { prompt: parsePrompt(prompt) };
    return this.#end(requestId, { outcome: 'completed', failure: null, ...given({ reply, usage }), ...said });
  }

  /** The request failed: ends the turn and frees the lock; no watermark moves. */
  async failRequest(requestId: string, reason = 'The request failed.'): Promise<TrackedRequest> {
    checkText(reason, 'reason');
    return this.#end(requestId, { outcome: 'failed', failure: { code: 'agent_failed', message: reason } });
  }

  /** Null: no such request is tracked. */
  getRequest(requestId: string): Promise<TrackedRequest | null> {
    return this.#requests.view(requestId);
  }

  /** The agent's current session; null: it has none yet. */
  async getAgentSession(agentId: string): Promise<string | null> {
    const conversation = await this.#requests.conversation(agentId);
    const [newest] = conversation === null ? [] : await this.#requests.sessions(conversation.id, 1);
    return newest?.id ?? null;
  }

  getSession(sessionId: string): Promise<TrackedSession | null> {
    return this.#requests.sessionView(sessionId);
  }

  /** Every session of the agent, oldest first. */
  async sessionHistory(agentId: string): Promise<string[]> {
    const conversation = await this.#requests.conversation(agentId);
    const sessions = conversation === null ? [] : await this.#requests.sessions(conversation.id);
    return sessions.map((session) => session.id).reverse();
  }

  /** Who holds the lock of the agent's conversation; null: nobody. */
  async lockStatus(agentId: string): Promise<PublicLock | null> {
    const conversation = await this.#requests.conversation(agentId);
    return conversation === null ? null : this.#requests.lock(conversation.id);
  }

  /** Releases the locks. The next request for an agent interrupts its open one. */
  close(): Promise<void> {
    return this.#context.locks.close();
  }

  /** Repeating the same end returns the first one. */
  async #end(requestId: string, outcome: Outcome): Promise<TrackedRequest> {
    const before = await this.#requests.find(requestId);
    if (before !== null && viewOf(before).status === outcome.outcome) return viewOf(before);
    const open = await holdRequest(this.#context, requestId);
    const { prompt } = open.turn;
    if (outcome.prompt && prompt.length > 0 && !isSame(prompt, outcome.prompt)) throw otherPrompt(requestId);
    await endRequest(this.#context, open, outcome);
    await this.#context.locks.release(open.held);
    await this.#name(open.turn.conversation, outcome.prompt);
    return this.#view(requestId);
  }

  /** The first prompt is the title, unless the conversation has one. */
  async #name(conversation: string, prompt: Prompt | undefined): Promise<void> {
    const title = prompt === undefined ? '' : titleOf(prompt);
    const { parts, owner } = this.#context;
    if (title !== '') await parts.store.setTitle(owner, conversation, title, 'prompt');
  }

  async #view(requestId: string): Promise<TrackedRequest> {
    const request = await this.#requests.view(requestId);
    if (request === null) throw notTracked(requestId);
    return request;
  }
}

/** R3: a repetition has the same arguments. */
function sameAgain(found: Tracked, { agentId, sessionId, prompt }: Asked): TrackedRequest {
  const request = viewOf(found);
  const { requestId, options, conversation } = found.turn;
  if (request.agentId !== agentId) {
    const whose = `belongs to "${request.agentId ?? conversation}"`;
    throw new ThroughlineError('conflict', `The request id "${requestId}" ${whose}.`, { hint: NEW_ID });
  }
  if (prompt.length > 0 && !isSame(prompt, found.turn.prompt)) throw otherPrompt(requestId);
  const before = options.session ?? null;
  if (before === sessionId) return request;
  const session = before === null ? 'a new session' : `the session "${before}"`;
  throw new ThroughlineError('conflict', `The request "${requestId}" was tracked for ${session}.`, { hint: NEW_ID });
}

const NEW_ID = 'Use a new request id for a new request.';
const NEW_REQUEST: OptionNames<NewRequest> = { prompt: true };

function isSame(one: Prompt, other: Prompt): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** A prompt is given once: when the request is tracked, or at its end. */
function otherPrompt(requestId: string | null): ThroughlineError {
  return new ThroughlineError(
    'conflict',
    `The request "${requestId}" was tracked with another prompt, or without one.`,
    {
      hint: NEW_ID,
    },
  );
}

function isConflict(error: unknown): boolean {
  return error instanceof ThroughlineError && error.code === 'conflict';
}

function checkText(value: unknown, what: string): void {
  if (typeof value !== 'string') throw new ThroughlineError('invalid', `A ${what} must be a text.`);
}
