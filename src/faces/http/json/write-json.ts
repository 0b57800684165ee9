import { Pace } from '../../../flow/pace.ts';

const PACE = new Pace(() => performance.now(), setImmediate);

/**
 * The JSON of an answer: a short one as a text, a long one as a stream that is encoded as it is read. `done` is called when everything
 * was encoded, or the stream was cancelled.
 */
export function writeJson(answer: object, done: () => void): string | ReadableStream<Uint8Array> {
  const pieces = jsonPieces(answer);
  const begin = pieces.next().value ?? '';
  let next = pieces.next();
  if (next.done) {
    done();
    return begin;
  }
  return new ReadableStream<Uint8Array>({
    start: (stream) => stream.enqueue(Buffer.from(begin)),
    async pull(stream) {
      if (PACE.isOver) await PACE.next();
      if (next.done) {
        stream.close();
        return done();
      }
      stream.enqueue(Buffer.from(next.value));
      next = pieces.next();
    },
    cancel: done,
  });
}

/** A piece of this size is encoded in about a tenth of a millisecond. */
const PIECE = 65_536;

/** Lists of the answer are encoded item by item. */
function* jsonPieces(answer: object): Generator<string, void> {
  let piece = '';
  for (const part of partsOf(answer)) {
    piece += part;
    if (piece.length < PIECE) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

function* partsOf(answer: object): Generator<string, void> {
  let before = '{';
  for (const [name, value] of Object.entries(answer)) {
    if (value === undefined) continue;
    yield `${before}${JSON.stringify(name)}:`;
    if (Array.isArray(value)) yield* itemsOf(value);
    else yield JSON.stringify(value);
    before = ',';
  }
  yield before === '{' ? '{}' : '}';
}

function* itemsOf(values: readonly unknown[]): Generator<string, void> {
  let before = '[';
  for (const value of values) {
    yield before + (JSON.stringify(value) ?? 'null');
    before = ',';
  }
  yield before === '[' ? '[]' : ']';
}
