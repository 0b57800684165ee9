import type { Conversation } from '../../core/conversation.ts';
import { ThroughlineError } from '../../core/errors.ts';
import type { ProcessIdentity } from '../../core/process.ts';
import { type PublicLock, toPublicLock } from '../../core/public/conversation.ts';
import { isUsable, type Session } from '../../core/restore/session.ts';
import { hasEnded, type Turn } from '../../core/turn/turn.ts';
import { inPages } from '../../flow/pages.ts';
import type { Store } from '../../ports/store.ts';
import type { TrackedRequest, TrackedSession } from '../../ports/tracker.ts';
import type { TrackerParts } from './locks.ts';

/** A request with its conversation. */
export interface Tracked {
  readonly turn: Turn;
  readonly conversation: Conversation;
}

/** Reads one owner's tracked requests and their sessions. Conversations that Throughline runs itself are not visible here. */
export class TrackedRequests {
  readonly #store: Store;
  readonly #owner: string;
  readonly #self: ProcessIdentity;

  constructor({ store, processes }: Pick<TrackerParts, 'store' | 'processes'>, owner: string) {
    this.#store = store;
    this.#self = processes.self();
    this.#owner = owner;
  }

  /** Null: no such request. Throws `conflict` when the id is that of a turn that Throughline runs itself. */
  async find(requestId: string): Promise<Tracked | null> {
    const found = await this.#look(requestId);
    if (found === null || found.conversation.driver === 'tracker') return found;
    const { key, id } = found.conversation;
    const message = `The request id "${requestId}" belongs to "${key ?? id}": Throughline itself runs it.`;
    throw new ThroughlineError('conflict', message, { hint: 'Use another request id.' });
  }

  /** Null: no such request is tracked. */
  async view(requestId: string): Promise<TrackedRequest | null> {
    const found = await this.#look(requestId);
    return found?.conversation.driver === 'tracker' ? this.viewOf(found) : null;
  }

  async viewOf({ turn, conversation }: Tracked): Promise<TrackedRequest> {
    return {
      requestId: turn.requestId ?? '',
      agentId: conversation.key,
      sessionId: turn.sessionId,
      prompt: turn.prompt.length === 0 ? null : turn.prompt,
      status: statusOf(turn),
      createdAt: turn.createdAt,
      lock: hasEnded(turn.state) ? null : await this.lock(conversation.id),
    };
  }

  /** The agent's conversation; null: none is tracked under this name. */
  async conversation(agentId: string): Promise<Conversation | null> {
    const found = await this.#store.findConversation(this.#owner, agentId);
    return found?.driver === 'tracker' && found.key === agentId ? found : null;
  }

  /** The request that is open in a conversation; null: none is. */
  async open({ id, head }: Conversation): Promise<Turn | null> {
    const read = (last: Turn | undefined) => this.#store.turns(this.#owner, id, { after: last?.n ?? head, limit: 100 });
    for await (const turn of inPages(read)) if (!hasEnded(turn.state)) return turn;
    return null;
  }

  async lock(conversation: string): Promise<PublicLock | null> {
    const { lock } = await this.#store.summary(this.#owner, conversation);
    return lock && toPublicLock(lock, this.#self);
  }

  /** The sessions of a conversation, most recently used first. */
  sessions(conversation: string, limit?: number): Promise<Session[]> {
    return this.#store.sessions(this.#owner, conversation, limit === undefined ? {} : { limit });
  }

  /** A session by the agent's id; null: the conversation never used it. */
  async session(conversation: string, id: string): Promise<Session | null> {
    const found = await this.#store.findSessions(this.#owner, id);
    const own = found.filter((session) => session.conversation === conversation);
    return own.find(isUsable) ?? own[0] ?? null;
  }

  /** With the agent that used it last; null: no tracked agent has. */
  async sessionView(id: string): Promise<TrackedSession | null> {
    for (const session of await this.#store.findSessions(this.#owner, id)) {
      const conversation = await this.#store.findConversation(this.#owner, session.conversation);
      if (conversation?.driver !== 'tracker') continue;
      const { usedAt: lastActivity, turns: requestCount } = session;
      const lock = await this.lock(conversation.id);
      return { sessionId: id, agentId: conversation.key, lastActivity, requestCount, lock };
    }
    return null;
  }

  /** A usable session belongs to one conversation of its owner (R1). `conversation` null: a new one. */
  async refuseForeign(id: string, conversation: string | null): Promise<void> {
    const found = await this.#store.findSessions(this.#owner, id);
    if (!found.some((session) => session.conversation !== conversation && isUsable(session))) return;
    throw new ThroughlineError('conflict', `The session "${id}" belongs to another of your conversations.`, {
      hint: 'Give the session of this agent, or null for a new one.',
    });
  }

  async #look(requestId: string): Promise<Tracked | null> {
    const turn = await this.#store.findRequest(this.#owner, requestId);
    if (turn === null) return null;
    const conversation = await this.#store.findConversation(this.#owner, turn.conversation);
    return conversation === null ? null : { turn, conversation };
  }
}

export function statusOf({ sessionId, state }: Turn): TrackedRequest['status'] {
  if (hasEnded(state)) return state === 'completed' ? 'completed' : 'failed';
  return sessionId === null ? 'pending' : 'active';
}
