import { noSuch } from '../../../core/errors.ts';
import type { Feed } from '../../../core/public/live-frame.ts';
import { Feeds } from '../../../flow/feeds.ts';
import type { Engine } from '../../../ports/engine.ts';
import type { Tasks } from '../../../ports/tasks.ts';

/**
 * The live streams that are open, by their ids. A second request changes the feeds of one, so that a reader who opens another
 * conversation keeps its connection. Nothing of a stream outlives its connection: a reader that reconnects sends its feeds
 * again, with their places.
 */
export class OpenStreams {
  readonly #open = new Map<string, { readonly owner: string; readonly feeds: Feeds }>();
  readonly #heartbeatMs: number;

  constructor(heartbeatMs: number) {
    this.#heartbeatMs = heartbeatMs;
  }

  /** The frames of a new stream, until the signal aborts. */
  async *open(
    engine: Engine,
    tasks: Tasks | null,
    wanted: readonly Feed[],
    signal: AbortSignal,
  ): AsyncGenerator<object> {
    const stream = crypto.randomUUID();
    const feeds = new Feeds(engine, tasks);
    this.#open.set(stream, { owner: engine.owner, feeds });
    try {
      feeds.set(wanted);
      yield { kind: 'opened', streamId: stream, heartbeatMs: this.#heartbeatMs };
      yield* feeds.frames(signal);
    } finally {
      this.#open.delete(stream);
      feeds.set([]);
    }
  }

  /** Throws `not_found` for a stream that has ended, or is that of another owner. */
  set(owner: string, stream: string, wanted: readonly Feed[]): string[] {
    const found = this.#open.get(stream);
    if (found?.owner !== owner) throw noSuch('stream', stream, 'It has ended. Open another one: POST /v1/streams.');
    found.feeds.set(wanted);
    return found.feeds.names;
  }
}
