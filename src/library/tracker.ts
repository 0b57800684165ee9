import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { parsePrompt, titleOf } from '../core/content.ts';
import type { Conversation } from '../core/conversation.ts';
import { ThroughlineError } from '../core/errors.ts';
import { DEFAULT_RESTORE } from '../core/restore-settings.ts';
import type { Session } from '../core/session.ts';
import type { Lock } from '../core/summary.ts';
import { hasEnded, type Turn } from '../core/turn.ts';
import type { Usage } from '../core/usage.ts';
import type { Claim, Fence, Write } from '../ports/store.ts';
import type { TrackerParts } from './throughline.ts';
import { endWrites, type Outcome, openSessionWrites, refusedWrites, sendWrites } from './tracked-turn.ts';

export type RequestStatus = 'pending' | 'active' | 'completed' | 'failed';

/** A request as its driver sees it. `sessionId` null: the agent has not named its session yet. */
export interface TrackedRequest {
  readonly requestId: string;
  readonly agentId: string | null;
  readonly sessionId: string | null;
  readonly status: RequestStatus;
  readonly createdAt: number;
}

export interface TrackedSession {
  readonly sessionId: string;
  readonly agentId: string | null;
  readonly lastActivity: number;
  readonly requestCount: number;
  readonly lock: Lock | null;
}

export interface CompletedRequest {
  readonly prompt?: string;
  readonly reply?: string;
  readonly usage?: Partial<Usage>;
}

/*
 * For programs that drive an agent themselves: the same store and the same rules, without an adapter.
 *
 *   trackRequest ──▶ pending ──▶ updateRequestSession ──▶ active ──▶ completeRequest | failRequest
 *
 * `agentId` is the key of a conversation, whose lease is the lock: one request at a time. A request is a turn, and a session
 * exists from the moment when the agent has named it; there is none named null. Workers never claim these conversations.
 */
export class ConversationTracker {
  readonly #parts: TrackerParts;
  readonly #owner: string;
  readonly #worker = randomUUID();
  /** Leases that this tracker holds, by conversation. */
  readonly #held = new Map<string, Held>();
  #heartbeat: NodeJS.Timeout | null = null;

  constructor(parts: TrackerParts, owner: string) {
    this.#parts = parts;
    this.#owner = owner;
  }

  /**
   * Records a request before it goes out, and takes the conversation's lock. `sessionId` is the session that the agent will
   * be asked to go on with; null: it starts one. The same request again gives the same answer; a second one while the first
   * is open is a `conflict` that names the first.
   */
  async trackRequest(requestId: string, agentId: string | null, sessionId: string | null): Promise<TrackedRequest> {
    const before = await this.#parts.store.findRequest(this.#owner, nonEmpty(requestId, 'request id'));
    if (before !== null) return this.#sameAgain(before, agentId);
    const conversation = await this.#conversation(agentId);
    const held = await this.#lock(conversation);
    try {
      const accepted = await this.#parts.store.enqueue(this.#owner, {
        id: randomUUIDv7(),
        conversation: conversation.id,
        requestId,
        agent: TRACKED_AGENT,
        defaultAgent: null,
        prompt: [],
        options: {},
        retryOf: null,
      });
      const turn = await this.#parts.store.begin(held.fence, [TRACKED_AGENT]);
      if (turn?.id !== accepted.turn.id) throw new ThroughlineError('conflict', 'Another request came first.');
      if (sessionId !== null) await this.#give(turn, held, nonEmpty(sessionId, 'session id'));
      return await this.#request(requestId);
    } catch (error) {
      await this.#endOpenTurn(conversation.id, requestId, held);
      throw error;
    }
  }

  /** The agent has named its session: the mapping of its agent moves now. The same session again changes nothing. */
  async updateRequestSession(requestId: string, sessionId: string): Promise<TrackedRequest> {
    const { turn, held } = await this.#open(requestId);
    if (turn.sessionId !== nonEmpty(sessionId, 'session id')) await this.#give(turn, held, sessionId);
    return this.#request(requestId);
  }

  /** The agent has answered: the turn ends, its session's watermark moves, the lock is free. */
  completeRequest(requestId: string, done: CompletedRequest = {}): Promise<TrackedRequest> {
    if (done.prompt !== undefined) parsePrompt(done.prompt);
    return this.#end(requestId, 'completed', { outcome: 'completed', failure: null, ...done });
  }

  /** The request came to nothing: no watermark moves, the lock is free. */
  failRequest(requestId: string, reason = 'The request failed.'): Promise<TrackedRequest> {
    return this.#end(requestId, 'failed', { outcome: 'failed', failure: { code: 'agent_failed', message: reason } });
  }

  /** Null: no such request. */
  async getRequest(requestId: string): Promise<TrackedRequest | null> {
    const turn = await this.#parts.store.findRequest(this.#owner, requestId);
    return turn === null ? null : this.#view(turn);
  }

  /** The session that the agent's next request goes on with; null: it has none yet. */
  async getAgentSession(agentId: string): Promise<string | null> {
    const [newest] = await this.#sessions(agentId, 1);
    return newest?.id ?? null;
  }

  async getSession(sessionId: string): Promise<TrackedSession | null> {
    const [session] = await this.#parts.store.findSessions(this.#owner, sessionId);
    if (session === undefined) return null;
    const conversation = await this.#parts.store.findConversation(this.#owner, session.conversation);
    const { lock } = await this.#parts.store.summary(this.#owner, session.conversation);
    const { usedAt: lastActivity, turns: requestCount } = session;
    return { sessionId, agentId: conversation?.key ?? null, lastActivity, requestCount, lock };
  }

  /** Every session that the agent has lived in, oldest first. */
  async sessionHistory(agentId: string): Promise<string[]> {
    return (await this.#sessions(agentId)).map((session) => session.id).reverse();
  }

  /** Who holds the agent's conversation; null: nobody. A dead holder's lock is free at once, a silent one's when it expires. */
  async lockStatus(agentId: string): Promise<Lock | null> {
    const conversation = await this.#parts.store.findConversation(this.#owner, agentId);
    return conversation === null ? null : (await this.#parts.store.summary(this.#owner, conversation.id)).lock;
  }

  /** Gives back the locks. Requests still open are interrupted by whoever asks next. */
  async close(): Promise<void> {
    if (this.#heartbeat) clearInterval(this.#heartbeat);
    this.#heartbeat = null;
    const held = [...this.#held.values()];
    this.#held.clear();
    await Promise.all(held.map(({ fence }) => this.#parts.store.release(fence)));
  }

  // ── the lock ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #lock(conversation: Conversation): Promise<Held> {
    const claim =
      (await this.#claim(conversation.id)) ?? ((await this.#reap()) ? await this.#claim(conversation.id) : null);
    if (claim === null) throw await this.#busy(conversation);
    const held: Held = { fence: claim.fence, counter: 1 };
    this.#held.set(conversation.id, held);
    this.#heartbeat ??= setInterval(() => void this.#beat(), this.#parts.settings.leaseMs / 3).unref();
    // Requests whose driver is gone: nobody knows what became of them.
    for (const left of [claim.unfinished, claim.turn]) if (left) await this.#interrupt(held, left);
    for (let turn = await this.#begin(held); turn; turn = await this.#begin(held)) await this.#interrupt(held, turn);
    return held;
  }

  #claim(conversation: string): Promise<Claim | null> {
    const { store, sandboxes, settings, processes } = this.#parts;
    return store.claim({
      worker: { id: this.#worker, process: processes.self() },
      place: sandboxes.place,
      agents: [TRACKED_AGENT],
      driver: 'tracker',
      leaseMs: settings.leaseMs,
      conversation,
    });
  }

  #begin(held: Held): Promise<Turn | null> {
    return this.#parts.store.begin(held.fence, [TRACKED_AGENT]);
  }

  async #interrupt(held: Held, turn: Turn): Promise<void> {
    const failure = {
      code: 'interrupted',
      message: 'The program that tracked this request ended before it did.',
    } as const;
    const writes = endWrites(
      turn,
      await this.#sessionOf(turn),
      { outcome: 'interrupted', failure },
      this.#parts.clock.now(),
    );
    await this.#commit(held, writes);
  }

  async #busy(conversation: Conversation): Promise<ThroughlineError> {
    const { lock } = await this.#parts.store.summary(this.#owner, conversation.id);
    const turns = await this.#parts.store.turns(this.#owner, conversation.id, { after: conversation.head, limit: 10 });
    const open = turns.find((turn) => !hasEnded(turn.state));
    const by = open?.requestId ? `the request "${open.requestId}"` : 'another request';
    const until = lock ? ` (process ${lock.pid}, ${Math.ceil(lock.expiresIn / 1000)} s left unless renewed)` : '';
    return new ThroughlineError('conflict', `"${conversation.key}" is busy with ${by}${until}.`, {
      hint: 'Wait for its end; one conversation has one writer at a time.',
    });
  }

  async #reap(): Promise<boolean> {
    const { store, processes } = this.#parts;
    const dead = (await store.workers()).filter((worker) => processes.status(worker.process) === 'dead');
    for (const worker of dead) await store.forgetWorker(worker.id);
    return dead.length > 0;
  }

  async #beat(): Promise<void> {
    const { store, settings } = this.#parts;
    const fences = [...this.#held.values()].map((held) => held.fence);
    // A failed heartbeat is repeated by the next one; a lost lease shows itself at the next write.
    await store.renew(fences, settings.leaseMs).catch(() => {});
  }

  async #commit(held: Held, writes: readonly Write[]): Promise<void> {
    const { counter } = held;
    held.counter += writes.length;
    await this.#parts.store.commit(held.fence, counter, writes);
  }

  // ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #conversation(agentId: string | null): Promise<Conversation> {
    const id = randomUUIDv7();
    const { conversation } = await this.#parts.store.ensureConversation(this.#owner, {
      id,
      key: agentId === null ? null : nonEmpty(agentId, 'agent id'),
      title: null,
      agent: TRACKED_AGENT,
      driver: 'tracker',
      sandbox: id,
      cwd: null,
      place: this.#parts.sandboxes.place,
      restore: DEFAULT_RESTORE,
    });
    if (conversation.driver === 'tracker') return conversation;
    throw new ThroughlineError('refused', `The conversation "${agentId}" is run by Throughline itself.`, {
      hint: 'Send to it instead of tracking it, or use another agent id.',
    });
  }

  /** The request's turn and our lock on it; taken over when its driver is gone, for the caller knows what became of it. */
  async #open(requestId: string): Promise<{ turn: Turn; held: Held }> {
    const turn = await this.#parts.store.findRequest(this.#owner, requestId);
    if (turn === null) {
      throw new ThroughlineError('not_found', `The request "${requestId}" is not tracked.`, {
        hint: 'Call trackRequest first.',
      });
    }
    if (hasEnded(turn.state))
      throw new ThroughlineError('conflict', `The request "${requestId}" has already ended: ${turn.state}.`);
    const held = this.#held.get(turn.conversation) ?? (await this.#takeOver(turn));
    return { turn, held };
  }

  async #takeOver(turn: Turn): Promise<Held> {
    const { store } = this.#parts;
    const claim =
      (await this.#claim(turn.conversation)) ?? ((await this.#reap()) ? await this.#claim(turn.conversation) : null);
    if ((claim?.unfinished ?? claim?.turn)?.id === turn.id && claim) {
      const held: Held = { fence: claim.fence, counter: 1 };
      this.#held.set(turn.conversation, held);
      return held;
    }
    if (claim) await store.release(claim.fence);
    throw new ThroughlineError('conflict', `The request "${turn.requestId}" is tracked by another process.`);
  }

  async #end(requestId: string, status: RequestStatus, outcome: Outcome): Promise<TrackedRequest> {
    const before = await this.getRequest(requestId);
    if (before?.status === status) return before;
    const { turn, held } = await this.#open(requestId);
    const session = await this.#sessionOf(turn);
    await this.#commit(held, endWrites(turn, session, outcome, this.#parts.clock.now()));
    await this.#release(turn.conversation, held);
    if (outcome.prompt !== undefined) {
      await this.#parts.store.setTitle(this.#owner, turn.conversation, titleOf(parsePrompt(outcome.prompt)), 'prompt');
    }
    return this.#request(requestId);
  }

  async #endOpenTurn(conversation: string, requestId: string, held: Held): Promise<void> {
    const turn = await this.#parts.store.findRequest(this.#owner, requestId);
    if (turn && !hasEnded(turn.state)) await this.#commit(held, refusedWrites(turn));
    await this.#release(conversation, held);
  }

  async #release(conversation: string, held: Held): Promise<void> {
    this.#held.delete(conversation);
    await this.#parts.store.release(held.fence);
  }

  async #sameAgain(turn: Turn, agentId: string | null): Promise<TrackedRequest> {
    const request = await this.#view(turn);
    if (request.agentId === agentId) return request;
    throw new ThroughlineError(
      'conflict',
      `The request id "${turn.requestId}" belongs to "${request.agentId ?? turn.conversation}".`,
    );
  }

  async #request(requestId: string): Promise<TrackedRequest> {
    const request = await this.getRequest(requestId);
    if (request === null) throw new ThroughlineError('not_found', `The request "${requestId}" is not tracked.`);
    return request;
  }

  async #view(turn: Turn): Promise<TrackedRequest> {
    const conversation = await this.#parts.store.findConversation(this.#owner, turn.conversation);
    const { requestId, sessionId, createdAt } = turn;
    const open = sessionId === null ? 'pending' : 'active';
    const status = !hasEnded(turn.state) ? open : turn.state === 'completed' ? 'completed' : 'failed';
    return { requestId: requestId ?? '', agentId: conversation?.key ?? null, sessionId, status, createdAt };
  }

  // ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #sessions(agentId: string, limit?: number): Promise<Session[]> {
    const conversation = await this.#parts.store.findConversation(this.#owner, agentId);
    if (conversation === null) return [];
    return this.#parts.store.sessions(this.#owner, conversation.id, limit === undefined ? {} : { limit });
  }

  async #sessionOf(turn: Turn): Promise<Session | null> {
    if (turn.sessionId === null) return null;
    const sessions = await this.#parts.store.sessions(this.#owner, turn.conversation, { agent: TRACKED_AGENT });
    return sessions.find((session) => session.id === turn.sessionId) ?? null;
  }

  /** The request's turn has this session from here on, and so has its agent. */
  async #give(turn: Turn, held: Held, id: string): Promise<void> {
    const { store, clock } = this.#parts;
    const lineage = await store.sessions(this.#owner, turn.conversation, { agent: TRACKED_AGENT });
    const session = openSessionWrites(lineage, id, turn.sessionId, TRACKED_AGENT);
    await this.#commit(held, [...session.writes(turn.id), ...sendWrites(turn, session.ref, clock.now())]);
  }
}

interface Held {
  readonly fence: Fence;
  counter: number;
}

/** The agent of a tracked turn: whichever its driver uses, we know only that it is not one of ours. */
export const TRACKED_AGENT = 'tracked';

function nonEmpty(value: string, what: string): string {
  if (typeof value === 'string' && value.trim() !== '') return value;
  throw new ThroughlineError('invalid', `A ${what} must be a non-empty text, not ${JSON.stringify(value)}.`);
}
