import type { Failure } from '../../core/errors.ts';
import type { Feed, LiveFrame } from '../../core/public/live-frame.ts';

/**
 * One stream of everything that a program follows: hints, the board, and conversations, each as a feed that counts its own events. Embedded or
 * over HTTP: the same frames. It reconnects by itself, each feed after its last event: no event is missed, and none comes twice.
 * Iterate it once. It is read as fast as its frames are taken, and leaving the loop closes it. Throws errors that reconnecting cannot
 * solve: invalid credentials, `closed`.
 *
 * @example
 * const live = tl.live([{ feed: 'chat', of: 'conversation', conversation: 'ticket-4711' }]);
 * for await (const frame of live) if (frame.kind === 'event') console.log(frame.feed, frame.event.seq, frame.event.kind);
 */
export interface Live extends AsyncIterable<LiveFrame> {
  /** Begins a feed, and ends one of the same name. Throws `invalid`. */
  follow(feed: Feed): void;
  /** Ends a feed: no more frames of it are yielded. Does nothing if there is none of this name. */
  unfollow(name: string): void;
  readonly state: LiveState;
  /** Calls back after every change of the state, until the returned function is called. */
  onState(listener: (state: LiveState) => void): () => void;
  /**
   * Reconnects at once if the connection is lost, or if it seems open but has been silent for too long, as after sleep. For a page that
   * becomes visible again, and for a network that comes back.
   */
  wake(): void;
  /** Ends the iteration. Idempotent. */
  close(): void;
}

/**
 * The connection of a live stream. An embedded one is open until it is closed.
 *
 * @example
 * import type { LiveState } from 'throughline';
 *
 * const text = ({ state, failure }: LiveState) => (state === 'waiting' ? `offline: ${failure?.message}` : state);
 */
export interface LiveState {
  /** `waiting`: the server did not answer, or its data file is gone (`storage_gone`); it is tried again soon. */
  readonly state: 'connecting' | 'open' | 'waiting' | 'closed';
  /** Since when it is open, or not open, in milliseconds since 1970. */
  readonly since: number;
  /** Why it is waiting, or why it was closed; null: it was not open yet, is open, or was closed by the caller. */
  readonly failure: Failure | null;
}

/** Opens live streams, each on behalf of an owner. */
export interface LiveStreams {
  /** Throws `invalid`. */
  live(owner: string, feeds: readonly Feed[]): Live;
}
