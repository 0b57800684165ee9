import type { ServerResponse } from 'node:http';
import { ThroughlineError } from '../../core/errors.ts';

/*
 * A stream of server-sent events that a reader cannot make grow. What a reader has not taken waits in the buffer of its
 * connection, up to 64 KiB; then nothing more is read for it, and one that takes nothing for a while is cut off. It comes back
 * with the number of the last event that it has (`Last-Event-ID`), so it loses nothing and gets nothing twice.
 */
export interface StreamSettings {
  readonly heartbeatMs: number;
  /** How long a reader may take nothing while its buffer is full. */
  readonly stallMs: number;
  /** How soon a reader comes back. */
  readonly retryMs: number;
  /** How often readers are asked whether they still may read. */
  readonly checkMs: number;
}

export const STREAM: StreamSettings = { heartbeatMs: 15_000, stallMs: 10_000, retryMs: 1_000, checkMs: 1_000 };

/** What a stream carries, until the signal aborts. */
export type Feed =
  /** A reader goes on from the number of any of these. */
  | { readonly numbered: true; readonly values: (signal: AbortSignal) => AsyncIterable<{ readonly seq: number }> }
  | { readonly numbered: false; readonly values: (signal: AbortSignal) => AsyncIterable<object> };

/** How a stream begins: its headers are sent, and it is written where the answer would be. */
export type BeginStream = (headers: Record<string, string>, write: (outgoing: ServerResponse) => void) => Response;

export interface StreamOptions extends StreamSettings {
  readonly feed: Feed;
  /** Aborted, the stream ends in good order: by the server that ends or lets its reader in no longer, or here with its reader. */
  readonly stop: AbortController;
}

/** Why it ended, and with which error if it failed. */
export type StreamEnd =
  | { readonly why: 'left' | 'slow' | 'over' }
  | { readonly why: 'failed'; readonly error: unknown };

const HEARTBEAT = Buffer.from(':\n\n');

/** An event that many read is written once: they are given the same object. */
const ENCODED = new WeakMap<object, Buffer>();

/** JSON has no raw line breaks and a number has none at all: no field can begin another. */
export function encodeFrame(data: object, id?: number): Buffer {
  const known = ENCODED.get(data);
  if (known !== undefined) return known;
  const bytes = Buffer.from(`${id === undefined ? '' : `id: ${Number(id)}\n`}data: ${JSON.stringify(data)}\n\n`);
  ENCODED.set(data, bytes);
  return bytes;
}

/**
 * Writes the stream until it is over, for whatever reason; its headers have been sent. Straight to the connection, whose buffer
 * and idea of a stalled reader are Node's own: a web stream in between costs every reader more than all the rest of it.
 */
export async function writeStream(outgoing: ServerResponse, options: StreamOptions): Promise<StreamEnd> {
  const { feed, stop, heartbeatMs, stallMs, retryMs } = options;
  const { signal } = stop;
  let gone: 'left' | 'slow' | null = null;
  outgoing.on('close', () => {
    gone ??= 'left';
    stop.abort();
  });
  outgoing.on('timeout', () => cut('slow'));
  const heart = setInterval(() => {
    if (!signal.aborted && !outgoing.writableNeedDrain) outgoing.write(HEARTBEAT);
  }, heartbeatMs);
  try {
    outgoing.write(`retry: ${retryMs}\n\n`);
    for await (const value of feed.values(signal)) {
      if (signal.aborted) break;
      if (!outgoing.write(encodeFrame(value, feed.numbered ? (value as { seq: number }).seq : undefined)))
        await taken();
    }
  } catch (error) {
    // A server that ends has told its readers all that it knows: for them that is an end in good order.
    if (gone === null && !(error instanceof ThroughlineError && error.code === 'closed')) {
      cut('left');
      return { why: 'failed', error };
    }
  } finally {
    clearInterval(heart);
  }
  if (gone !== null) return { why: gone };
  outgoing.end();
  return { why: 'over' };

  /** Tears the connection down, with what is still in its buffers: no end in good order, so that the reader comes back. */
  function cut(why: 'left' | 'slow'): void {
    gone ??= why;
    outgoing.destroy();
  }

  /** Resolves when the buffer is empty again, or the stream is to end. Node's timeout begins anew whenever a part was taken. */
  function taken(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        outgoing.setTimeout(0);
        outgoing.off('drain', done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      outgoing.setTimeout(stallMs);
      outgoing.on('drain', done);
      signal.addEventListener('abort', done);
      if (signal.aborted) done();
    });
  }
}
