import { hasCode, ThroughlineError } from '../../core/errors.ts';
import {
  type AskedRequest,
  checkId,
  notTracked,
  parseCompleted,
  parseFailed,
  parseRequest,
  type ReportedEnd,
  stoppedWaiting,
} from '../../core/input/tracked.ts';
import type { PublicLock } from '../../core/public/conversation.ts';
import { type Prompt, titleOf } from '../../core/turn/content.ts';
import { hasEnded } from '../../core/turn/turn.ts';
import type {
  ClientTracker,
  ClientTrackers,
  CompletedRequest,
  ConversationTracker,
  FailedRequest,
  NewRequest,
  TrackedRequest,
  TrackedSession,
  Trackers,
} from '../../ports/tracker.ts';
import { ClientLocks, ProcessLocks, type TrackerLocks, type TrackerParts } from './locks.ts';
import { acceptRequest } from './new-requests.ts';
import { endRequest, giveSession, holdRequest, type TrackerContext } from './open-requests.ts';
import { statusOf, type Tracked, TrackedRequests } from './tracked-requests.ts';
import type { Outcome } from './tracked-turn.ts';

/** Trackers on the store itself: for this program, and for those that reach it through a server. */
export function storeTrackers(parts: TrackerParts): Trackers & ClientTrackers {
  return {
    tracker: (owner) => new StoreTracker(parts, owner, new ProcessLocks(parts, agentOf(owner))),
    clientTracker(owner, holder) {
      return new LeasedTracker(parts, owner, new ClientLocks(parts, agentOf(owner), { owner, holder }));
    },
  };
}

/**
 * The real agent is not known here. Each owner has another name, because a session belongs to one conversation, and two owners may both
 * have a session "1".
 */
function agentOf(owner: string): string {
  return `tracked:${owner}`;
}

/** The tracker on the store itself. Its locks belong to the program whose requests it tracks. */
class StoreTracker implements ConversationTracker {
  protected readonly context: TrackerContext;
  readonly #requests: TrackedRequests;
  readonly #closed = new AbortController();

  constructor(parts: TrackerParts, owner: string, locks: TrackerLocks) {
    this.#requests = new TrackedRequests(parts, owner);
    this.context = { parts, owner, agent: agentOf(owner), locks, requests: this.#requests };
  }

  async trackRequest(
    requestId: string,
    agentId: string | null,
    sessionId: string | null,
    options: NewRequest = {},
  ): Promise<TrackedRequest> {
    const given = parseRequest(requestId, agentId, sessionId, options);
    const signal = AbortSignal.any([this.#closed.signal, ...(given.signal ? [given.signal] : [])]);
    const asked: AskedRequest = { ...given, signal };
    const before = await this.#requests.find(requestId);
    if (before !== null) return this.#repeated(before, asked);
    try {
      await acceptRequest(this.context, asked);
    } catch (error) {
      if (signal.aborted) throw stoppedWaiting(signal);
      // The same request may have come twice at once: both calls return the first one.
      const first = hasCode(error, 'conflict') ? await this.#requests.find(requestId) : null;
      if (first === null || hasEnded(first.turn.state)) throw error;
      return this.#repeated(first, asked);
    }
    return this.view(requestId);
  }

  async updateRequestSession(requestId: string, sessionId: string): Promise<TrackedRequest> {
    checkId(sessionId, 'session id');
    const open = await holdRequest(this.context, requestId);
    if (open.turn.sessionId !== sessionId) {
      await this.#requests.refuseForeign(sessionId, open.turn.conversation);
      await giveSession(this.context, open, sessionId);
    }
    return this.view(requestId);
  }

  async completeRequest(requestId: string, done: CompletedRequest = {}): Promise<TrackedRequest> {
    return this.#end(requestId, { outcome: 'completed', failure: null, ...parseCompleted(done) });
  }

  async failRequest(requestId: string, done: FailedRequest = {}): Promise<TrackedRequest> {
    const { reason = 'The request failed.', ...rest }: ReportedEnd = parseFailed(done);
    return this.#end(requestId, { outcome: 'failed', failure: { code: 'agent_failed', message: reason }, ...rest });
  }

  getRequest(requestId: string): Promise<TrackedRequest | null> {
    return this.#requests.view(requestId);
  }

  async getAgentSession(agentId: string): Promise<string | null> {
    const conversation = await this.#requests.conversation(agentId);
    const [newest] = conversation === null ? [] : await this.#requests.sessions(conversation.id, 1);
    return newest?.id ?? null;
  }

  getSession(sessionId: string): Promise<TrackedSession | null> {
    return this.#requests.sessionView(sessionId);
  }

  async sessionHistory(agentId: string): Promise<string[]> {
    const conversation = await this.#requests.conversation(agentId);
    const sessions = conversation === null ? [] : await this.#requests.sessions(conversation.id);
    return sessions.map((session) => session.id).reverse();
  }

  async lockStatus(agentId: string): Promise<PublicLock | null> {
    const conversation = await this.#requests.conversation(agentId);
    return conversation === null ? null : this.#requests.lock(conversation.id);
  }

  close(): Promise<void> {
    this.#closed.abort(new ThroughlineError('closed', 'The tracker is closed.'));
    return this.context.locks.close();
  }

  async #end(requestId: string, outcome: Outcome): Promise<TrackedRequest> {
    const before = await this.#requests.find(requestId);
    if (before !== null && statusOf(before.turn) === outcome.outcome) return this.#requests.viewOf(before);
    const open = await holdRequest(this.context, requestId);
    const { prompt } = open.turn;
    if (outcome.prompt && prompt.length > 0 && !isSame(prompt, outcome.prompt)) throw otherPrompt(requestId);
    await endRequest(this.context, open, outcome);
    await this.context.locks.release(open.held);
    await this.#setTitle(open.turn.conversation, outcome.prompt);
    return this.view(requestId);
  }

  /** The first prompt is the title, unless the conversation has one. */
  async #setTitle(conversation: string, prompt: Prompt | undefined): Promise<void> {
    const title = prompt === undefined ? '' : titleOf(prompt);
    const { parts, owner } = this.context;
    if (title !== '') await parts.store.setTitle(owner, conversation, title, 'prompt');
  }

  /** R3: a repeated request must have the same arguments. */
  async #repeated(found: Tracked, { agentId, sessionId, prompt, current }: AskedRequest): Promise<TrackedRequest> {
    const { requestId, options, conversation } = found.turn;
    const { key } = found.conversation;
    if (key !== agentId) {
      throw new ThroughlineError('conflict', `The request id "${requestId}" belongs to "${key ?? conversation}".`, {
        hint: NEW_ID,
      });
    }
    if (prompt.length > 0 && !isSame(prompt, found.turn.prompt)) throw otherPrompt(requestId);
    const before = options.session ?? null;
    if (current || before === sessionId) return this.#requests.viewOf(found);
    const session = before === null ? 'a new session' : `the session "${before}"`;
    throw new ThroughlineError('conflict', `The request "${requestId}" was tracked for ${session}.`, { hint: NEW_ID });
  }

  protected async view(requestId: string): Promise<TrackedRequest> {
    const request = await this.#requests.view(requestId);
    if (request === null) throw notTracked(requestId);
    return request;
  }
}

/** The same for one program that reaches us through a server. */
class LeasedTracker extends StoreTracker implements ClientTracker {
  readonly #locks: ClientLocks;

  constructor(parts: TrackerParts, owner: string, locks: ClientLocks) {
    super(parts, owner, locks);
    this.#locks = locks;
  }

  async renewRequest(requestId: string): Promise<TrackedRequest> {
    const { held } = await holdRequest(this.context, requestId);
    if (await this.#locks.renew(held)) return this.view(requestId);
    // It was lost a moment ago: this takes it again, or says who has it.
    await holdRequest(this.context, requestId);
    return this.view(requestId);
  }

  async releaseRequest(requestId: string): Promise<TrackedRequest> {
    const found = await this.context.requests.find(requestId);
    if (found === null) throw notTracked(requestId);
    // The lock of an ended request is already free, or belongs to the next request.
    const held = hasEnded(found.turn.state) ? null : await this.#locks.held(found.turn.conversation);
    if (held !== null) await this.#locks.release(held);
    return this.view(requestId);
  }
}

const NEW_ID = 'Use a new request id for a new request.';

function isSame(one: Prompt, other: Prompt): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** A prompt is given once: when the request is tracked, or at its end. */
function otherPrompt(requestId: string | null): ThroughlineError {
  const message = `The request "${requestId}" was tracked with another prompt, or without one.`;
  return new ThroughlineError('conflict', message, { hint: NEW_ID });
}
