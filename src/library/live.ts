import { checkFeeds, type Feed, type LiveFrame } from '../core/public/live-frame.ts';
import { Feeds } from '../flow/feeds.ts';
import type { Live, LiveState, LiveStreams } from '../ports/engine/live.ts';
import type { Engine } from '../ports/engine.ts';
import type { Tasks } from '../ports/tasks.ts';

/** Live streams of an engine and its tasks in this process. */
export function liveStreams(engine: Engine, tasks: Tasks): LiveStreams {
  return { live: (owner, feeds) => new EmbeddedLive(engine.as(owner), tasks.as(owner), feeds) };
}

/** It has no connection that could be lost, so it is open until it is closed. */
class EmbeddedLive implements Live {
  readonly #feeds: Feeds;
  readonly #closed = new AbortController();
  readonly #wanted = new Map<string, Feed>();
  readonly #listeners = new Set<(state: LiveState) => void>();
  #isRead = false;
  #state: LiveState = { state: 'open', since: Date.now(), failure: null };

  constructor(engine: Engine, tasks: Tasks, feeds: readonly Feed[]) {
    this.#feeds = new Feeds(engine, tasks);
    for (const feed of checkFeeds(feeds)) this.#wanted.set(feed.feed, feed);
  }

  follow(feed: Feed): void {
    const others = [...this.#wanted.values()].filter((other) => other.feed !== feed.feed);
    checkFeeds([...others, feed]);
    this.#wanted.set(feed.feed, feed);
    if (this.#isRead) this.#feeds.add(feed);
  }

  unfollow(name: string): void {
    this.#wanted.delete(name);
    this.#feeds.remove(name);
  }

  get state(): LiveState {
    return this.#state;
  }

  onState(listener: (state: LiveState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wake(): void {}

  close(): void {
    this.#closed.abort();
    if (this.#state.state === 'closed') return;
    this.#state = { state: 'closed', since: Date.now(), failure: null };
    for (const listener of this.#listeners) listener(this.#state);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<LiveFrame> {
    this.#isRead = true;
    this.#feeds.set([...this.#wanted.values()]);
    try {
      for await (const frame of this.#feeds.frames(this.#closed.signal)) {
        if (frame.kind === 'ended') this.#wanted.delete(frame.feed);
        yield frame;
      }
    } finally {
      this.close();
    }
  }
}
