import type { EventSourceMessage } from 'eventsource-parser';
import { failureOf, isGone, ThroughlineError } from '../../core/errors.ts';
import { checkFeeds, type Feed, type LiveFrame, type StreamOpened } from '../../core/public/live-frame.ts';
import type { Live, LiveState, LiveStreams } from '../../ports/engine/live.ts';
import { PROBLEM_EVENT } from '../../wire/problem-codes.ts';
import type { Caller } from './caller.ts';
import { createBackoff } from './connection/backoff.ts';
import type { Stop } from './connection/connection.ts';
import { messagesOf } from './connection/event-stream.ts';
import { away, errorIn, ServerAway } from './connection/faults.ts';

/** Live streams through one server. */
export function httpLiveStreams(caller: Caller): LiveStreams {
  return { live: (owner, feeds) => new HttpLive(caller.as(owner), feeds) };
}

/** A stream without data for so many heartbeats is dead. */
const DEAD_AFTER = 2.5;
/** `wake` reconnects a stream without data for so many heartbeats. */
const SUSPICIOUS_AFTER = 1.2;
/** `wake` reconnects when the answer to the request has not come for so long. */
const LOST_AFTER_MS = 3_000;

/** A feed, and how far it was read. */
interface Entry {
  /** As the caller named it. */
  readonly name: string;
  readonly of: Feed;
  after: number;
  log: string | undefined;
}

/**
 * The states: connecting → open → waiting (for the next try) → connecting …, until it is closed or reconnecting cannot help.
 *
 * The server gets a unique name for every feed, which is never reused. So frames of a feed that was ended or replaced meanwhile are
 * recognised and dropped. When feeds change while the stream is open, all of them are sent to the server. If that fails, the stream is
 * opened again, with the current feeds.
 */
class HttpLive implements Live {
  readonly #caller: Caller;
  /** By their names for the server. */
  readonly #feeds = new Map<string, Entry>();
  readonly #listeners = new Set<(state: LiveState) => void>();
  readonly #closed = new AbortController();
  #state: LiveState = { state: 'connecting', since: Date.now(), failure: null };
  #names = 0;
  /** Rises with every change of the feeds; and the version that the server has. */
  #version = 0;
  #sentVersion = 0;
  #isSending = false;
  /** The id of the stream while it is open, and what ends its connection. */
  #stream: string | null = null;
  #connection: Stop | null = null;
  #heartbeatMs: number | null = null;
  #heardAt = 0;
  /** Ends the pause before the next try, and makes later pauses short again. */
  #endPause = () => {};

  constructor(caller: Caller, feeds: readonly Feed[]) {
    this.#caller = caller;
    checkFeeds(feeds);
    for (const feed of feeds) this.#add(feed);
  }

  follow(feed: Feed): void {
    const others = [...this.#feeds.values()].filter(({ name }) => name !== feed.feed);
    checkFeeds([...others.map(({ of }) => of), feed]);
    this.#remove(feed.feed);
    this.#add(feed);
    void this.#sendFeeds();
  }

  unfollow(name: string): void {
    if (this.#remove(name)) void this.#sendFeeds();
  }

  get state(): LiveState {
    return this.#state;
  }

  onState(listener: (state: LiveState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wake(): void {
    this.#endPause();
    const silentMs = Date.now() - this.#heardAt;
    const most = this.#stream === null ? LOST_AFTER_MS : SUSPICIOUS_AFTER * (this.#heartbeatMs ?? LOST_AFTER_MS);
    if (silentMs > most) this.#cut('it was silent for too long');
  }

  close(): void {
    this.#closed.abort();
    this.#set('closed', null);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<LiveFrame> {
    const { connection } = this.#caller.stream('openStream', {});
    const { transport, timing } = connection;
    const giveUpMs = Number.POSITIVE_INFINITY;
    const backoff = createBackoff(transport.where, { ...timing, giveUpMs });
    const { signal } = this.#closed;
    try {
      while (!signal.aborted) {
        let why = new ServerAway('the stream ended', { nothingDone: true });
        try {
          yield* this.#connect(backoff);
        } catch (error) {
          if (signal.aborted) return;
          if (error instanceof ServerAway) why = error;
          // The data file may be back soon, and a live stream continues then.
          else if (isGone(error)) why = new ServerAway(error.message, { nothingDone: false, cause: error });
          else throw error;
        }
        if (signal.aborted) return;
        this.#set('waiting', failureOf(isGone(why.cause) ? why.cause : away(transport.where, why, giveUpMs)));
        const pause = new AbortController();
        this.#endPause = () => {
          backoff.reset();
          pause.abort();
        };
        await connection.wait(backoff, why, AbortSignal.any([signal, pause.signal]));
      }
    } catch (error) {
      this.#set('closed', error instanceof ThroughlineError ? failureOf(error) : null);
      throw error;
    } finally {
      this.close();
    }
  }

  /** One connection, from its request to its end. */
  async *#connect(backoff: ReturnType<typeof createBackoff>): AsyncGenerator<LiveFrame> {
    if (this.#state.state !== 'connecting') this.#set('connecting', this.#state.failure);
    const version = this.#version;
    const { connection, request } = this.#caller.stream('openStream', { body: { feeds: this.#wanted() } });
    const stop = connection.begin(this.#closed.signal);
    this.#connection = stop;
    this.#heardAt = Date.now();
    let openedAt = 0;
    try {
      stop.limit(request.withinMs, 'it took too long');
      const answer = await connection.send(request, stop);
      backoff.answered();
      const silenceMs = () =>
        this.#heartbeatMs === null ? connection.timing.silenceMs : DEAD_AFTER * this.#heartbeatMs;
      const onChunk = () => {
        this.#heardAt = Date.now();
        if (openedAt > 0 && this.#heardAt - openedAt > connection.timing.longestMs) backoff.reset();
      };
      const onRetry = (ms: number) => backoff.limit(ms);
      for await (const message of messagesOf(answer, connection, stop, { silenceMs, onRetry, onChunk })) {
        const frame = frameIn(message);
        if (frame.kind === 'opened') {
          openedAt = Date.now();
          this.#opened(frame, version);
        } else {
          // Only events shorten the next pause: a server may end every stream before it sends one.
          if (frame.kind === 'event' || frame.kind === 'task') backoff.reset();
          const taken = this.#take(frame);
          if (taken !== null) yield taken;
        }
      }
    } finally {
      this.#stream = null;
      this.#connection = null;
      stop.abort(); // the caller may have left before the end
      connection.end(stop);
    }
  }

  #opened({ streamId, heartbeatMs }: StreamOpened, version: number): void {
    this.#stream = streamId;
    this.#heartbeatMs = heartbeatMs;
    this.#sentVersion = version;
    this.#set('open', null);
    void this.#sendFeeds();
  }

  /** Remembers how far a feed was read. Null: it was ended meanwhile. */
  #take(frame: LiveFrame): LiveFrame | null {
    const entry = this.#feeds.get(frame.feed);
    if (entry === undefined) return null;
    if (frame.kind === 'began') entry.log = frame.logId;
    if (frame.kind === 'event' || frame.kind === 'task') entry.after = frame.event.seq;
    if (frame.kind === 'ended') this.#feeds.delete(frame.feed);
    return { ...frame, feed: entry.name };
  }

  /** Sends the current feeds to the server, one request at a time. */
  async #sendFeeds(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      while (this.#stream !== null && this.#sentVersion !== this.#version) {
        const [stream, version, signal] = [this.#stream, this.#version, this.#connection?.signal];
        await this.#caller.ask('setFeeds', { params: { stream }, body: { feeds: this.#wanted() }, signal });
        if (this.#stream === stream) this.#sentVersion = version;
      }
    } catch {
      // Opening the stream again either helps or reports the cause.
      this.#cut('its feeds could not be changed');
    } finally {
      this.#isSending = false;
    }
  }

  #wanted(): Feed[] {
    return [...this.#feeds].map(([feed, { of, after, log }]) =>
      of.of === 'hints' ? { ...of, feed } : { ...of, feed, after, ...(log !== undefined && { log }) },
    );
  }

  #add(feed: Feed): void {
    const { after = 0, log }: { after?: number; log?: string } = feed.of === 'hints' ? {} : feed;
    this.#names += 1;
    this.#feeds.set(String(this.#names), { name: feed.feed, of: feed, after, log });
    this.#version += 1;
  }

  #remove(name: string): boolean {
    const [known] = [...this.#feeds].find(([, entry]) => entry.name === name) ?? [];
    if (known === undefined) return false;
    this.#feeds.delete(known);
    this.#version += 1;
    return true;
  }

  #cut(why: string): void {
    this.#connection?.abort(new ServerAway(why, { nothingDone: false }));
  }

  #set(state: LiveState['state'], failure: LiveState['failure']): void {
    if (this.#state.state === 'closed') return;
    // `since` stays the same while the stream is not open.
    const isSame = (this.#state.state === 'open') === (state === 'open');
    this.#state = { state, since: isSame ? this.#state.since : Date.now(), failure };
    for (const listener of this.#listeners) listener(this.#state);
  }
}

function frameIn({ event, data }: EventSourceMessage): LiveFrame | StreamOpened {
  if (event === PROBLEM_EVENT) throw errorIn(data);
  return JSON.parse(data);
}
