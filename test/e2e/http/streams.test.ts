import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { EventSource } from 'eventsource';
import { createParser } from 'eventsource-parser';
import { expect, test } from 'vitest';
import { encodeFrame } from '../../../src/faces/http/streams/event-stream.ts';
import { until } from '../../faults/harness/until.ts';
import { run } from '../support/conversations.ts';
import { ServedHome, TOKEN } from './support/served-home.ts';

test('a reader continues after any event number, from the query or from Last-Event-ID, and the header wins', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  await caller.ok('POST', '/conversations', { key: 'chat' });
  await caller.finished((await caller.ok('POST', '/conversations/chat/turns', { prompt: 'hello' })).turn);
  const first = async (path: string, headers = {}) => {
    for await (const event of caller.events(path, headers)) return event;
    throw new Error('The stream ended without an event.');
  };
  expect(await first('/conversations/chat/events')).toMatchObject({ id: '1', data: { seq: 1 } });
  expect(await first('/conversations/chat/events?after=3')).toMatchObject({ id: '4', data: { seq: 4 } });
  expect(await first('/conversations/chat/events', { 'last-event-id': '4' })).toMatchObject({ id: '5' });
  expect(await first('/conversations/chat/events?after=2', { 'last-event-id': '5' })).toMatchObject({ id: '6' });
  const wrong = await caller.with({ 'last-event-id': '5\u00e9' }).get('/conversations/chat/events');
  expect(wrong).toMatchObject({ status: 400 });
});

test('a stream sends its retry interval, and heartbeats while nothing happens', async () => {
  await using home = await ServedHome.start({ server: { stream: { heartbeatMs: 10, retryMs: 321 } } });
  await home.caller.ok('POST', '/conversations', { key: 'chat' });
  const reader = await rawReader(home, '/v1/conversations/chat/events?after=1');
  await until('two heartbeats have come', () => reader.text.split(':\n\n').length > 2);
  expect(reader.text).toContain('retry: 321\n\n');
  reader.socket.destroy();
});

test('text of an agent or a caller that looks like a frame does not begin another event', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  const lines = ['id: 999', 'data: {"kind":"turn.ended"}', 'event: error', '<script>alert(1)</script>\u001b[2J\u0000'];
  const requestId = 'r\r\nid: 999\r\n\r\ndata: {"kind":"turn.ended"}\n\n';
  await caller.ok('POST', '/conversations', { key: 'chat' });
  const prompt = lines.map((line) => `/say ${line}`).join('\n');
  const { turn } = await caller.ok('POST', '/conversations/chat/turns', { prompt, requestId });
  const { reply } = await caller.finished(turn);
  const seqs: number[] = [];
  let text = '';
  for await (const { id, data } of caller.events('/conversations/chat/events')) {
    expect(id).toBe(String(data.seq));
    seqs.push(data.seq);
    if (data.kind === 'turn.queued') expect(data.payload.requestId).toBe(requestId);
    if (data.kind === 'turn.update') text += data.payload.update.content?.text ?? '';
    if (data.kind === 'turn.ended') break;
  }
  expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  for (const line of lines) expect(reply).toContain(line);
  expect(text).toBe(reply);
  const { headers } = await caller.get(`/turns/${turn.id}/answer`);
  expect(headers.get('content-type')).toBe('application/json');
  expect(headers.get('x-content-type-options')).toBe('nosniff');
});

test('any text is encoded as one event', () => {
  for (const text of ['\n', '\r', '\r\n\r\n', '\n\ndata: x', '\u2028', '\u2029\u0085', ':', '\0']) {
    const seen: string[] = [];
    createParser({ onEvent: ({ data }) => seen.push(data) }).feed(new TextDecoder().decode(encodeFrame({ text })));
    expect(seen.map((data) => JSON.parse(data))).toEqual([{ text }]);
    // No character at which a client could split lines: Python splits at the last three as well.
    expect(seen.join('')).not.toMatch(/[\r\n\u0085\u2028\u2029]/);
  }
});

/** Uses the unix socket, because its buffers are small: the server notices early that nobody reads. */
test('a reader that stops reading is disconnected, and gets every event once when it reconnects', async () => {
  await using home = await ServedHome.start({ server: { stream: { stallMs: 50 } } });
  const { caller } = home;
  await caller.ok('POST', '/conversations', { key: 'chat' });
  const big = 'x'.repeat(100_000);
  for (let i = 0; i < 12; i += 1) {
    await run(home.engine, 'chat', `/say ${i} ${big}`); // not over HTTP: this client must not count as a slow reader
  }
  const { lastSeq } = await caller.ok('GET', '/conversations/chat');
  const seqs: number[] = [];
  const stopAtFirst = ({ seq }: { seq: number }, socket: Socket) => {
    seqs.push(seq);
    if (seq === 1) socket.pause();
  };
  const stalled = await rawReader(home, '/v1/conversations/chat/events', stopAtFirst, home.socket);
  await until('the reader is disconnected', () => home.metrics.text().includes('readers_ended_total{why="slow"} 1'));
  expect(home.metrics.readers).toBe(0);
  stalled.socket.resume();
  await stalled.closed;
  expect(seqs.length).toBeLessThan(lastSeq);
  while (seqs.at(-1) !== lastSeq) {
    // On a busy machine it may be disconnected again. Then it reconnects again.
    const next = await rawReader(home, `/v1/conversations/chat/events?after=${seqs.at(-1) ?? 0}`, ({ seq }, socket) => {
      seqs.push(seq);
      if (seq === lastSeq) socket.destroy();
    });
    await next.closed;
  }
  expect(seqs).toEqual(Array.from({ length: lastSeq }, (_, index) => index + 1));
});

test('a reader that reads slowly is not disconnected, however long one event takes', async () => {
  const stallMs = 2_000;
  await using home = await ServedHome.start({ server: { stream: { stallMs } } });
  const { caller } = home;
  await caller.ok('POST', '/conversations', { key: 'chat' });
  await run(home.engine, 'chat', `/say ${'x'.repeat(3_000_000)}`);
  const { lastSeq } = await caller.ok('GET', '/conversations/chat');
  const seqs: number[] = [];
  const onData = ({ seq }: { seq: number }) => seqs.push(seq);
  const start = performance.now();
  const slow = await rawReader(home, '/v1/conversations/chat/events', onData, home.socket, stallMs / 20);
  await until('it has everything', () => seqs.at(-1) === lastSeq);
  expect(performance.now() - start).toBeGreaterThan(2 * stallMs);
  expect(seqs).toEqual(Array.from({ length: lastSeq }, (_, index) => index + 1));
  expect(home.metrics.text()).not.toContain('why="slow"');
  slow.socket.destroy();
});

test('one owner has at most half of the readers, and may add one when another has left', async () => {
  await using home = await ServedHome.start({ server: { mostReaders: 4 } });
  const { caller: ann } = await home.key('ann', ['read']);
  const path = '/events';
  const stops = [new AbortController(), new AbortController()];
  const read = (caller: typeof ann, stop: AbortController) => caller.events(path, {}, stop.signal).next();
  const waiting = stops.map((stop) => read(ann, stop).catch(() => null));
  await until('two readers are connected', () => home.metrics.readers === 2);
  expect(await ann.get(path)).toMatchObject({ status: 429, body: { code: 'too_many', hint: expect.any(String) } });
  const other = new AbortController();
  waiting.push(read(home.caller, other).catch(() => null));
  await until('the reader of another owner is connected', () => home.metrics.readers === 3);
  stops[0]?.abort();
  await until('one reader has left', () => home.metrics.readers === 2);
  const again = new AbortController();
  waiting.push(read(ann, again).catch(() => null));
  await until('another reader is connected', () => home.metrics.readers === 3);
  for (const stop of [...stops, other, again]) stop.abort();
  await Promise.all(waiting);
});

test('the number of all readers is limited', async () => {
  await using home = await ServedHome.start({ server: { mostReaders: 1 } });
  await home.caller.ok('POST', '/conversations', { key: 'chat' });
  const reader = await rawReader(home, '/v1/conversations/chat/events');
  expect(await home.caller.get('/conversations/chat/events')).toMatchObject({
    status: 429,
    body: { code: 'too_many' },
  });
  reader.socket.destroy();
  await until('the reader has left', () => home.metrics.readers === 0);
});

test('the npm package eventsource gets every event once, through ten disconnects and a restart', async () => {
  await using home = await ServedHome.start({ server: { stream: { retryMs: 20 } } });
  const { caller } = home;
  await caller.ok('POST', '/conversations', { key: 'chat' });
  const proxy = await cuttingProxy(home);
  const seqs: number[] = [];
  let opened = 0;
  const source = new EventSource(`${proxy.url}/v1/conversations/chat/events`, {
    fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${TOKEN}` } }),
  });
  source.onopen = () => {
    opened += 1;
  };
  source.onmessage = ({ data, lastEventId }) => {
    const { seq } = JSON.parse(data);
    expect(lastEventId).toBe(String(seq));
    seqs.push(seq);
  };
  await caller.ok('POST', '/conversations/chat/turns', { prompt: '/stream 60 20' });
  await until('it is connected', () => opened > 0);
  for (let i = 0; i < 10; i += 1) {
    const [before, seen] = [opened, seqs.length];
    // The turn may have ended by now. The new title makes another event for it to receive.
    await caller.ok('PATCH', '/conversations/chat', { title: `Cut ${i}` });
    await until('it has another event', () => seqs.length > seen);
    proxy.cut();
    await until('it has reconnected', () => opened > before);
  }
  const before = opened;
  await home.down(60_000);
  await home.up();
  await until('it has reconnected after the restart', () => opened > before);
  const { turn } = await home.caller.ok('POST', '/conversations/chat/turns', { prompt: 'after the restart' });
  await home.caller.finished(turn);
  const { lastSeq } = await home.caller.ok('GET', '/conversations/chat');
  await until('it has everything', () => (seqs.at(-1) ?? 0) >= lastSeq);
  source.close();
  proxy.close();
  expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  expect(opened).toBe(12); // at first, after ten cuts, and after the restart
});

/** A proxy in front of the server. `cut` ends all its connections. */
async function cuttingProxy(home: ServedHome) {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const target = connect(home.port, '127.0.0.1');
    // The server accepts only its own address as Host.
    client.once('data', (head) =>
      target.write(head.toString('latin1').replace(/^host: .*$/im, `Host: 127.0.0.1:${home.port}`)),
    );
    target.pipe(client);
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(one.on('error', () => {}).on('close', () => other.destroy()));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, cut, close: () => server.close(cut) };
}

interface RawReader {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  text: string;
}

/** A reader whose socket the test controls. Pauses after every chunk if `pauseMs` is given. Resolves when the answer has begun. */
async function rawReader(
  home: ServedHome,
  path: string,
  onData: (data: { seq: number }, socket: Socket) => void = () => {},
  unixSocket?: string,
  pauseMs = 0,
): Promise<RawReader> {
  const socket = unixSocket === undefined ? connect(home.port, '127.0.0.1') : connect(unixSocket);
  const host = unixSocket === undefined ? `127.0.0.1:${home.port}` : 'localhost';
  socket.write(`GET ${path} HTTP/1.0\r\nHost: ${host}\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
  const closed = new Promise<void>((resolve) => socket.on('error', () => {}).on('close', () => resolve()));
  const reader: RawReader = { socket, closed, text: '' };
  const parser = createParser({ onEvent: ({ data }) => onData(JSON.parse(data), socket) });
  let isInHead = true;
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    if (pauseMs > 0) {
      socket.pause();
      setTimeout(() => socket.resume(), pauseMs);
    }
    reader.text += chunk;
    const body = isInHead ? reader.text.split('\r\n\r\n').slice(1).join('\r\n\r\n') : chunk;
    if (isInHead && !reader.text.includes('\r\n\r\n')) return;
    isInHead = false;
    parser.feed(body);
  });
  await until('the answer begins', () => reader.text.includes('\r\n\r\n'));
  return reader;
}
