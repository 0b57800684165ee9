import type { ServerResponse } from 'node:http';
import { hasCode, isDamage, isGone, type ThroughlineError } from '../../../core/errors.ts';
import { jsonLine } from '../../../core/input/visible.ts';
import { problem } from '../../../wire/problem.ts';
import { PROBLEM_EVENT } from '../../../wire/problem-codes.ts';

/*
 * A stream of server-sent events with bounded memory. Up to 64 KiB wait in the buffer of the connection; then nothing more is
 * read from the store, and a reader that takes nothing for a while is disconnected. It reconnects with the number of its last
 * event (`Last-Event-ID`), so it loses nothing and gets nothing twice.
 */
export interface StreamSettings {
  readonly heartbeatMs: number;
  /** How long a reader may read nothing while its buffer is full. */
  readonly stallMs: number;
  /** How soon a browser reconnects. */
  readonly retryMs: number;
  /** How often the credentials of readers are checked again. */
  readonly checkMs: number;
}

export const STREAM: StreamSettings = { heartbeatMs: 15_000, stallMs: 10_000, retryMs: 1_000, checkMs: 1_000 };

/** The values of a stream, until the signal aborts. */
export type Feed =
  /** A reader can continue from the number of each, in this log. */
  | {
      readonly numbered: true;
      readonly log: string;
      readonly values: (signal: AbortSignal) => AsyncIterable<{ readonly seq: number }>;
    }
  | { readonly numbered: false; readonly values: (signal: AbortSignal) => AsyncIterable<object> };

/** Sends the headers of a stream; `write` then writes the body. */
export type BeginStream = (headers: Record<string, string>, write: (outgoing: ServerResponse) => void) => Response;

interface StreamOptions extends StreamSettings {
  readonly feed: Feed;
  /** Ends the stream normally: the server stops, the credentials became invalid, or the reader left. */
  readonly stop: AbortController;
}

/** Why a stream ended, with the error if it failed. */
type StreamEnd = { readonly why: 'left' | 'slow' | 'over' } | { readonly why: 'failed'; readonly error: unknown };

const HEARTBEAT = Buffer.from(':\n\n');

/** Readers of one event share its object, so it is encoded once. */
const ENCODED = new WeakMap<object, Buffer>();

/** Neither one line of JSON nor a number contains a line break, so no value can end its field. */
export function encodeFrame(data: object, id?: number): Buffer {
  const known = ENCODED.get(data);
  if (known !== undefined) return known;
  const bytes = Buffer.from(`${id === undefined ? '' : `id: ${Number(id)}\n`}data: ${jsonLine(data)}\n\n`);
  ENCODED.set(data, bytes);
  return bytes;
}

/** The last message of a stream that cannot continue. */
function encodeProblem({ code, message, hint }: ThroughlineError): string {
  return `event: ${PROBLEM_EVENT}\ndata: ${jsonLine(problem(code, message, hint))}\n\n`;
}

/**
 * Writes the stream until it ends; its headers have been sent. Writes to Node's connection directly, with its buffer: a web stream
 * in between would cost more than everything else.
 */
export async function writeStream(outgoing: ServerResponse, options: StreamOptions): Promise<StreamEnd> {
  const { feed, stop, heartbeatMs, stallMs, retryMs } = options;
  const { signal } = stop;
  let gone: 'left' | 'slow' | null = null;
  const left = () => {
    gone ??= 'left';
    stop.abort();
  };
  outgoing.on('close', left);
  // It may have been closed while the request was read.
  if (outgoing.destroyed) left();
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
    // When the server stops, its readers have received everything: that is a normal end.
    if (gone === null && !hasCode(error, 'closed')) {
      // A lasting fault is reported: a reader that is only disconnected would reconnect again and again.
      if (isDamage(error) || isGone(error)) outgoing.end(encodeProblem(error));
      else cut('left');
      return { why: 'failed', error };
    }
  } finally {
    clearInterval(heart);
  }
  if (gone !== null) return { why: gone };
  outgoing.end();
  return { why: 'over' };

  /** Destroys the connection with its buffers. The reader sees an error, and reconnects. */
  function cut(why: 'left' | 'slow'): void {
    gone ??= why;
    outgoing.destroy();
  }

  /** Resolves when the buffer is empty, or the stream should end. */
  function taken(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        endWatch();
        outgoing.off('drain', done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const endWatch = watchReader(outgoing, stallMs, () => cut('slow'));
      outgoing.on('drain', done);
      signal.addEventListener('abort', done);
      if (signal.aborted) done();
    });
  }
}

/** How often in its time a reader is looked at. */
const LOOKS = 10;

/**
 * Calls back when the other side has read nothing of what waits for it for `stallMs`, at most a tenth of that later. Returns a function that
 * ends the watch. Node's own timeout of a connection comes up to twice as late: it waits once more when a part has left since, and the first part
 * leaves at once, for the buffers of the system.
 */
export function watchReader({ socket }: ServerResponse, stallMs: number, onStall: () => void): () => void {
  const waiting = () => (socket as SocketWithHandle | null)?._handle?.writeQueueSize ?? 0;
  let read = 0;
  let readAt = performance.now();
  const timer = setInterval(() => {
    const [left, now] = [waiting(), performance.now()];
    const readNow = (socket?.bytesWritten ?? 0) - left;
    if (left === 0 || readNow !== read) [read, readAt] = [readNow, now];
    else if (now - readAt >= stallMs) onStall();
  }, stallMs / LOOKS);
  return () => clearInterval(timer);
}

/** What Node has passed to the system and the system has not taken yet is known only here. */
type SocketWithHandle = { readonly _handle?: { readonly writeQueueSize: number } | null };
