import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { STREAM, writeStream } from './event-stream.ts';

test('a stream whose reader has left before it begins ends at once', async () => {
  const outgoing = new ServerResponse(new IncomingMessage(new Socket()));
  outgoing.destroy();
  await new Promise(setImmediate);
  const waits = async function* (signal: AbortSignal) {
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
    yield* [];
  };
  const end = writeStream(outgoing, {
    ...STREAM,
    feed: { numbered: false, values: waits },
    stop: new AbortController(),
  });
  expect(await end).toEqual({ why: 'left' });
});
