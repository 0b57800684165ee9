import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { ThroughlineError } from '../../../core/errors.ts';
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

test('a reader gets an error when the data file is gone, and not only a closed connection', async () => {
  const values = async function* () {
    yield* [];
    throw new ThroughlineError('storage_gone', 'The data file was moved.', { hint: 'Put it back.' });
  };
  const server = createServer((_, outgoing) => {
    void writeStream(outgoing, { ...STREAM, feed: { numbered: false, values }, stop: new AbortController() });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect(await answer.text()).toMatch(/\nevent: problem\ndata: \{.*"code":"storage_gone".*"hint":"Put it back\."/);
});

test('a reader that stops reading is disconnected after the time that is set, not after twice that time', async () => {
  const stallMs = 3_000;
  const value = { text: 'x'.repeat(16 * 1024 * 1024) };
  const ended = Promise.withResolvers<unknown>();
  const later = Promise.withResolvers<string>();
  const server = createServer(async (_, outgoing) => {
    const values = async function* () {
      setTimeout(() => later.resolve('later'), 1.9 * stallMs);
      yield value;
    };
    const stop = new AbortController();
    ended.resolve(writeStream(outgoing, { ...STREAM, stallMs, feed: { numbered: false, values }, stop }));
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const reader = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
  onTestFinished(() => void reader.destroy());
  reader.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const began = performance.now();
  expect(await Promise.race([ended.promise, later.promise])).toEqual({ why: 'slow' });
  expect(performance.now() - began).toBeGreaterThanOrEqual(stallMs);
});
