import { type ErrorCode, failureOf, hasCode, ThroughlineError } from '../core/errors.ts';
import { checkEventNumber } from '../core/event.ts';
import type { PublicEvent } from '../core/public/event.ts';
import type { Feed, LiveFrame } from '../core/public/live-frame.ts';
import type { PublicTaskEvent } from '../core/public/task.ts';

/** Where the feeds of an owner come from; an engine is one. */
interface Conversations {
  conversation(idOrKey: string): Promise<{ readonly id: string; readonly lastSeq: number; readonly logId: string }>;
  follow(id: string, options: Place): AsyncIterable<PublicEvent>;
  hints(options: { signal: AbortSignal }): AsyncIterable<Extract<LiveFrame, { kind: 'hint' }>['hint']>;
}

/** The board of an owner; `Tasks` is one. */
interface Board {
  lastSeq(): Promise<number>;
  logId(): Promise<string>;
  follow(options: Place): AsyncIterable<PublicTaskEvent>;
}

interface Place {
  readonly after: number;
  readonly log: string;
  readonly signal: AbortSignal;
}

interface Running {
  readonly name: string;
  readonly stop: AbortController;
  readonly frames: AsyncGenerator<LiveFrame>;
}

/** These concern one feed. Any other error concerns all of them. */
const ENDS_FEED: readonly ErrorCode[] = ['not_found', 'log_changed', 'invalid', 'storage_damaged'];

/**
 * Several feeds as one stream of frames. Each feed is asked for its next frame only when the last one was taken, and the frames that
 * are ready are taken in turn: a feed with many events gets no more than its share, and a slow one does not delay the others. Feeds come
 * and go while the stream runs.
 */
export class Feeds {
  readonly #conversations: Conversations;
  readonly #board: Board | null;
  readonly #running = new Map<string, Running>();
  /** At most one of each feed. */
  readonly #ready: { readonly of: Running; readonly frame: LiveFrame }[] = [];
  readonly #catchUp = new CatchUp();
  #fault: { readonly error: unknown } | null = null;
  #wake = () => {};

  /** `board`: null where there are no tasks. */
  constructor(conversations: Conversations, board: Board | null) {
    this.#conversations = conversations;
    this.#board = board;
  }

  /** Feeds whose names run already continue as they are, new ones begin, all others end. They were checked. */
  set(feeds: readonly Feed[]): void {
    const wanted = new Set(feeds.map(({ feed }) => feed));
    for (const name of this.#running.keys()) if (!wanted.has(name)) this.remove(name);
    for (const feed of feeds) if (!this.#running.has(feed.feed)) this.add(feed);
  }

  /** Ends the feed that had this name. */
  add(feed: Feed): void {
    this.remove(feed.feed);
    const stop = new AbortController();
    const running = { name: feed.feed, stop, frames: this.#framesOf(feed, stop.signal) };
    this.#running.set(feed.feed, running);
    this.#pull(running);
  }

  /** No frame of it is yielded any more. */
  remove(name: string): void {
    const running = this.#running.get(name);
    if (running === undefined) return;
    this.#running.delete(name);
    running.stop.abort();
    // It ends later; its errors are of no interest then.
    running.frames.return(undefined).catch(() => {});
  }

  get names(): string[] {
    return [...this.#running.keys()];
  }

  /** Until the signal aborts; then all feeds end. Throws an error that concerns all of them. */
  async *frames(signal: AbortSignal): AsyncGenerator<LiveFrame> {
    const wake = () => this.#wake();
    signal.addEventListener('abort', wake);
    try {
      while (!signal.aborted) {
        const next = this.#ready.shift();
        if (next === undefined) {
          if (this.#fault !== null) throw this.#fault.error;
          await new Promise<void>((resolve) => (this.#wake = resolve));
        } else if (!this.#isGone(next.of)) {
          if (next.frame.kind === 'ended') this.remove(next.of.name);
          yield next.frame;
          if (!this.#isGone(next.of)) this.#pull(next.of);
        }
      }
    } finally {
      signal.removeEventListener('abort', wake);
      this.set([]);
    }
  }

  #pull(of: Running): void {
    const next = of.frames.next().then(
      ({ done, value }) => {
        if (!done && !this.#isGone(of)) this.#ready.push({ of, frame: value });
      },
      (error: unknown) => {
        if (!this.#isGone(of)) this.#fault ??= { error };
      },
    );
    void next.then(() => this.#wake());
  }

  #isGone(of: Running): boolean {
    return this.#running.get(of.name) !== of;
  }

  async *#framesOf(feed: Feed, signal: AbortSignal): AsyncGenerator<LiveFrame> {
    try {
      if (feed.of === 'hints') yield* this.#hints(feed.feed, signal);
      else if (feed.of === 'board') yield* this.#tasks(feed, signal);
      else yield* this.#events(feed, signal);
    } catch (error) {
      if (!hasCode(error, ...ENDS_FEED)) throw error;
      yield { feed: feed.feed, kind: 'ended', failure: failureOf(error) };
    }
  }

  async *#hints(feed: string, signal: AbortSignal): AsyncGenerator<LiveFrame> {
    const hints = this.#conversations.hints({ signal })[Symbol.asyncIterator]();
    // It listens from now on. What changed before is covered by the first hint.
    let next = hints.next();
    next.catch(() => {}); // awaited below, unless the feed ends first
    try {
      yield { feed, kind: 'hint', hint: { conversationId: null, seq: null } };
      for (;;) {
        const { done, value } = await next;
        if (done) return;
        yield { feed, kind: 'hint', hint: value };
        next = hints.next();
      }
    } finally {
      // Aborting does not reach it between two hints.
      await hints.return?.();
    }
  }

  async *#tasks({ feed, after = 0, log }: Feed & { of: 'board' }, signal: AbortSignal): AsyncGenerator<LiveFrame> {
    const board = this.#board;
    if (board === null) throw new ThroughlineError('not_found', 'There are no tasks here.');
    const [seq, logId] = await Promise.all([board.lastSeq(), board.logId()]);
    checkEventNumber({ after, log }, { lastSeq: seq, logId });
    yield { feed, kind: 'began', seq, logId };
    const events = board.follow({ after, log: logId, signal });
    yield* this.#catchUp.run(events, after, seq, (event) => ({ feed, kind: 'task', event }));
  }

  async *#events(wanted: Feed & { of: 'conversation' }, signal: AbortSignal): AsyncGenerator<LiveFrame> {
    const { feed, conversation, after = 0, log } = wanted;
    const { id, lastSeq, logId } = await this.#conversations.conversation(conversation);
    checkEventNumber({ after, log }, { lastSeq, logId });
    yield { feed, kind: 'began', seq: lastSeq, logId };
    const events = this.#conversations.follow(id, { after, log: logId, signal });
    yield* this.#catchUp.run(events, after, lastSeq, (event) => ({ feed, kind: 'event', event }));
  }
}

/** How many feeds of a stream read older events at a time: each keeps a page of them in memory. The others wait. */
const AT_A_TIME = 8;

class CatchUp {
  readonly #waiting: (() => void)[] = [];
  #free = AT_A_TIME;

  /** Yields events, and waits for a place first if some up to `seq` are missing. */
  async *run<E extends { readonly seq: number }>(
    events: AsyncIterable<E>,
    after: number,
    seq: number,
    framed: (event: E) => LiveFrame,
  ): AsyncGenerator<LiveFrame> {
    let leave = after < seq ? await this.#enter() : () => {};
    try {
      for await (const event of events) {
        yield framed(event);
        if (event.seq < seq) continue;
        leave();
        leave = () => {};
      }
    } finally {
      leave();
    }
  }

  /** Feeds that end while they wait enter and leave at once. */
  async #enter(): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return () => {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    };
  }
}
