import { hasCode, ThroughlineError } from '../../core/errors.ts';
import {
  checkId,
  notTracked,
  parseCompleted,
  parseFailed,
  parseRequest,
  stoppedWaiting,
} from '../../core/input/tracked.ts';
import type { PublicLock } from '../../core/public/conversation.ts';
import type {
  CompletedRequest,
  ConversationTracker,
  FailedRequest,
  NewRequest,
  TrackedRequest,
  TrackedSession,
  Trackers,
} from '../../ports/tracker.ts';
import { checkSegment } from './addresses.ts';
import type { Asked, Caller } from './caller.ts';

/** Trackers through one server. */
export function httpTrackers(caller: Caller): Trackers {
  return { tracker: (owner) => new HttpTracker(caller.as(owner)) };
}

/** The longest wait of one request. */
const LONGEST_WAIT_MS = 60_000;

/**
 * The tracker of a server, over HTTP: the same interface and the same answers as an embedded one. The locks are leases of this object,
 * under a random name. They are renewed three times per term, as long as this program lives and the server answers.
 */
class HttpTracker implements ConversationTracker {
  readonly #caller: Caller;
  readonly #holder = crypto.randomUUID();
  /** The open requests whose locks we have. */
  readonly #held = new Set<string>();
  readonly #closed = new AbortController();
  #renewing: ReturnType<typeof setTimeout> | null = null;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async trackRequest(
    requestId: string,
    agentId: string | null,
    sessionId: string | null,
    options: NewRequest = {},
  ): Promise<TrackedRequest> {
    const { prompt, current, waitMs, signal: given } = parseRequest(requestId, agentId, sessionId, options);
    const signal = AbortSignal.any([this.#closed.signal, ...(given ? [given] : [])]);
    const named = { requestId, agentId, sessionId, holder: this.#holder };
    const body = { ...named, ...(current && { current }), ...(prompt.length > 0 && { prompt }) };
    const start = performance.now();
    for (;;) {
      const left = waitMs - (performance.now() - start);
      const once = Math.ceil(Math.min(Math.max(left, 0), LONGEST_WAIT_MS));
      const asked = performance.now();
      try {
        const how: Asked = { body: { ...body, waitMs: once }, within: 'longMs', signal };
        return this.#keep(await this.#caller.ask('trackRequest', how));
      } catch (error) {
        // If the server has just given us the lock, it expires soon, because it is not renewed.
        if (signal.aborted) throw stoppedWaiting(signal);
        // A conflict other than a held lock is answered at once.
        const waited = performance.now() - asked >= once;
        if (!hasCode(error, 'conflict') || !waited || left <= LONGEST_WAIT_MS) throw error;
      }
    }
  }

  async updateRequestSession(requestId: string, sessionId: string): Promise<TrackedRequest> {
    checkId(sessionId, 'session id');
    const body = { sessionId, holder: this.#holder };
    return this.#keep(await this.#caller.ask('updateTrackedSession', { params: at(requestId), body }));
  }

  async completeRequest(requestId: string, done: CompletedRequest = {}): Promise<TrackedRequest> {
    const body = { ...parseCompleted(done), holder: this.#holder };
    return this.#keep(await this.#caller.ask('completeTracked', { params: at(requestId), body }));
  }

  async failRequest(requestId: string, done: FailedRequest = {}): Promise<TrackedRequest> {
    const body = { ...parseFailed(done), holder: this.#holder };
    return this.#keep(await this.#caller.ask('failTracked', { params: at(requestId), body }));
  }

  getRequest(requestId: string): Promise<TrackedRequest | null> {
    return orNull(async () => this.#caller.ask('getTrackedRequest', { params: at(requestId) }));
  }

  async getAgentSession(agentId: string): Promise<string | null> {
    return (await this.#agent(agentId))?.sessionId ?? null;
  }

  getSession(sessionId: string): Promise<TrackedSession | null> {
    return orNull(async () =>
      this.#caller.ask('getTrackedSession', { params: { session: checkSegment(sessionId, notTracked) } }),
    );
  }

  async sessionHistory(agentId: string): Promise<string[]> {
    return (await this.#agent(agentId))?.sessionIds ?? [];
  }

  async lockStatus(agentId: string): Promise<PublicLock | null> {
    return (await this.#agent(agentId))?.lock ?? null;
  }

  async close(): Promise<void> {
    this.#closed.abort(new ThroughlineError('closed', 'The tracker is closed.'));
    if (this.#renewing !== null) clearTimeout(this.#renewing);
    const held = [...this.#held];
    this.#held.clear();
    const body = { holder: this.#holder };
    // A lock that cannot be released now expires.
    await Promise.all(
      held.map((id) => this.#caller.ask('releaseTracked', { params: at(id), body }).then(undefined, ignoreKnown)),
    );
  }

  #agent(agentId: string) {
    return orNull(async () =>
      this.#caller.ask('getTrackedAgent', { params: { agent: checkSegment(agentId, notTracked) } }),
    );
  }

  /** Renews the lock of a request from now on if we hold it, and no longer if not. */
  #keep(request: TrackedRequest): TrackedRequest {
    const { requestId, lock } = request;
    if (lock?.holder !== `client ${this.#holder}`) this.#held.delete(requestId);
    else if (!this.#closed.signal.aborted) {
      this.#held.add(requestId);
      if (this.#renewing === null) this.#renewIn(lock.expiresIn / 3);
    }
    return request;
  }

  #renewIn(ms: number): void {
    this.#renewing = setTimeout(() => {
      this.#renewing = null;
      for (const id of this.#held) void this.#renew(id);
    }, ms);
    // In Node, it does not keep a program alive.
    (this.#renewing as { unref?: () => void }).unref?.();
  }

  async #renew(requestId: string): Promise<void> {
    try {
      const asked = { params: at(requestId), body: { holder: this.#holder }, signal: this.#closed.signal };
      const request = await this.#caller.ask('renewTracked', asked);
      // The request may have ended meanwhile.
      if (this.#held.has(requestId)) this.#keep(request);
    } catch (error) {
      // Another program has the lock, the request is gone, or the connection is closed. Otherwise the server is away: try again.
      if (hasCode(error, 'conflict', 'not_found', 'closed')) this.#held.delete(requestId);
      else if (this.#renewing === null && !this.#closed.signal.aborted) this.#renewIn(RETRY_MS);
    }
  }
}

const RETRY_MS = 1_000;

function at(requestId: string): { request: string } {
  return { request: checkSegment(requestId, notTracked) };
}

async function orNull<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (hasCode(error, 'not_found')) return null;
    throw error;
  }
}

/** A `ThroughlineError` is a state of the server or of the lock. Anything else is a bug. */
function ignoreKnown(error: unknown): void {
  if (!(error instanceof ThroughlineError)) throw error;
}
