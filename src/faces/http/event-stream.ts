/*
 * A stream of server-sent events that a reader cannot make grow. What a reader has not taken waits here, up to 64 KiB; then
 * nothing more is read for it, and one that takes nothing for a while is cut off. It comes back with the number of the last
 * event that it has (`Last-Event-ID`), so it loses nothing and gets nothing twice.
 */
export interface StreamSettings {
  readonly mostBytes: number;
  readonly heartbeatMs: number;
  /** How long a reader may take nothing while its buffer is full. */
  readonly stallMs: number;
  /** How soon a reader comes back. */
  readonly retryMs: number;
}

export const STREAM: StreamSettings = { mostBytes: 65_536, heartbeatMs: 15_000, stallMs: 10_000, retryMs: 1_000 };

export interface Frame {
  /** The number from which a reader goes on; left out: this one is not to go on from. */
  readonly id?: number;
  readonly data: object;
}

export interface StreamOptions extends StreamSettings {
  /** Ends when the signal aborts. */
  readonly frames: (signal: AbortSignal) => AsyncIterable<Frame>;
  /** The server's: aborted, every stream ends. */
  readonly shutdown: AbortSignal;
  /** Asked at every heartbeat: whoever may not read any more is cut off. */
  readonly stillAllowed: () => Promise<boolean>;
  /** Tears the connection down, with what is still in its buffers: no end in good order, so that the reader comes back. */
  readonly cut: () => void;
  readonly ended: (why: 'left' | 'slow' | 'over' | 'failed', error?: unknown) => void;
}

const encoder = new TextEncoder();
const HEARTBEAT = encoder.encode(':\n\n');

/** An event that many read is written once: they are given the same object. */
const ENCODED = new WeakMap<object, Uint8Array>();

/** JSON has no raw line breaks and a number has none at all: no field can begin another. */
export function encodeFrame({ id, data }: Frame): Uint8Array {
  const known = ENCODED.get(data);
  if (known !== undefined) return known;
  const bytes = encoder.encode(`${id === undefined ? '' : `id: ${Number(id)}\n`}data: ${JSON.stringify(data)}\n\n`);
  ENCODED.set(data, bytes);
  return bytes;
}

export function eventStream(options: StreamOptions): ReadableStream<Uint8Array> {
  const { mostBytes, heartbeatMs, stallMs, retryMs, frames, shutdown, stillAllowed, cut, ended } = options;
  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, shutdown]);
  let taken = () => {};

  /** Resolves when there is room again; false: the reader has taken nothing for too long. */
  function room(controller: ReadableStreamDefaultController): Promise<boolean> {
    return new Promise((resolve) => {
      if (signal.aborted || (controller.desiredSize ?? 0) > 0) return resolve(true);
      const timer = setTimeout(() => done(false), stallMs);
      const done = (isThere: boolean) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        resolve(isThere);
      };
      const onAbort = () => done(true);
      signal.addEventListener('abort', onAbort);
      taken = () => done(true);
    });
  }

  async function run(controller: ReadableStreamDefaultController): Promise<void> {
    const heart = setInterval(async () => {
      if (!(await stillAllowed().catch(() => true))) stop.abort();
      else if (!signal.aborted && (controller.desiredSize ?? 0) > 0) controller.enqueue(HEARTBEAT);
    }, heartbeatMs);
    try {
      for await (const frame of frames(signal)) {
        if (signal.aborted) break;
        controller.enqueue(encodeFrame(frame));
        if (await room(controller)) continue;
        cut();
        return ended('slow');
      }
      if (stop.signal.reason === LEFT) return ended('left');
      controller.close();
      ended('over');
    } catch (error) {
      if (stop.signal.reason === LEFT) return ended('left');
      cut();
      ended('failed', error);
    } finally {
      clearInterval(heart);
    }
  }

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        controller.enqueue(encoder.encode(`retry: ${retryMs}\n\n`));
        void run(controller);
      },
      pull: () => taken(),
      cancel: () => stop.abort(LEFT),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: mostBytes }),
  );
}

const LEFT = new Error('The reader has left.');
