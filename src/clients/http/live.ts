import type { EventSourceMessage } from 'eventsource-parser';
import { failureOf, isGone, ThroughlineError } from '../../core/errors.ts';
import { checkFeeds, type Feed, type LiveFrame } from '../../core/public/live-frame.ts';
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

/** Without anything for so many heartbeats, a stream is dead. */
const DEAD_AFTER = 2.5;
/** When somebody asks to look: silent for so many heartbeats is suspicious enough to reconnect. */
const SUSPICIOUS_AFTER = 1.2;
/** When somebody asks to look: an answer that has not come for so long was lost. */
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
 * Every feed has a name of its own towards the server, never used again: frames of a feed that was ended or replaced meanwhile are
 * told apart, and dropped. When feeds change while the stream is open, the server is told all of them; if that fails, the stream is
 * opened anew, which tells it as well.
 */
class HttpLive implements Live {
  readonly #caller: Caller;
  /** By their names towards the server. */
  readonly #feeds = new Map<string, Entry>();
  readonly #listeners = new Set<(state: LiveState) => void>();
  readonly #closed = new AbortController();
  #state: LiveState = { state: 'connecting', since: Date.now(), failure: null };
  #names = 0;
  /** Rises with every change of the feeds; and what the server was told. */
  #version = 0;
  #toldVersion = 0;
  #isTelling = false;
  /** The id of the stream while it is open, and what ends its connection. */
  #stream: string | null = null;
  #connection: Stop | null = null;
  #heartbeatMs: number | null = null;
  #heardAt = 0;
  /** Tries again now, and soon again if that fails. */
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
    void this.#tell();
  }

  unfollow(name: string): void {
    if (this.#remove(name)) void this.#tell();
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
          // It may be back soon, and a live stream outlives what happens to its server.
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
          // A server that ends every stream before it has sent an event is asked less and less often.
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

  #opened({ stream, heartbeatMs }: Opened, version: number): void {
    this.#stream = stream;
    this.#heartbeatMs = heartbeatMs;
    this.#toldVersion = version;
    this.#set('open', null);
    void this.#tell();
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

  /** Tells the server the feeds as they are now, one request at a time. */
  async #tell(): Promise<void> {
    if (this.#isTelling) return;
    this.#isTelling = true;
    try {
      while (this.#stream !== null && this.#toldVersion !== this.#version) {
        const [stream, version, signal] = [this.#stream, this.#version, this.#connection?.signal];
        await this.#caller.ask('setFeeds', { params: { stream }, body: { feeds: this.#wanted() }, signal });
        if (this.#stream === stream) this.#toldVersion = version;
      }
    } catch {
      // Whatever it is, opening the stream anew says so, or helps.
      this.#cut('its feeds could not be changed');
    } finally {
      this.#isTelling = false;
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
    // It stays the same while it is tried again and again.
    const isSame = (this.#state.state === 'open') === (state === 'open');
    this.#state = { state, since: isSame ? this.#state.since : Date.now(), failure };
    for (const listener of this.#listeners) listener(this.#state);
  }
}

interface Opened {
  readonly kind: 'opened';
  readonly stream: string;
  readonly heartbeatMs: number;
}

function frameIn({ event, data }: EventSourceMessage): LiveFrame | Opened {
  if (event === PROBLEM_EVENT) throw errorIn(data);
  return JSON.parse(data);
}
