// Lost replies, cut streams, and servers that stop answering or are gone.
import { expect, test } from 'vitest';
import { connect } from '../../../src/clients/http/connect.ts';
import { socketTransport } from '../../../src/clients/http/connection/node-transport.ts';
import type { PublicEvent } from '../../../src/core/public/event.ts';
import { Random, seedOfRun } from '../../faults/harness/random.ts';
import { until } from '../../faults/harness/until.ts';
import { ServedHome, type ServedOptions, TOKEN } from '../http/support/served-home.ts';
import { allEvents, ended, event, expectSound, refusedWith } from '../support/conversations.ts';
import { CuttingProxy } from './support/cutting-proxy.ts';

/** A server behind a proxy. `open` connects a client through the proxy. */
async function startProxied(options: ServedOptions = {}) {
  const home = await ServedHome.start(options);
  const proxy = await CuttingProxy.between(home.path, home.socket);
  const timing = { firstMs: 5, longestMs: 50 };
  const open = (more: object = {}) =>
    connect({ transport: socketTransport(proxy.path), token: TOKEN, timing: { ...timing, ...more } });
  return {
    home,
    proxy,
    open,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await home[Symbol.asyncDispose]();
    },
  };
}

test('a prompt whose reply is lost becomes one turn, and is not reported as a duplicate', async () => {
  await using setup = await startProxied();
  const engine = await setup.open();
  await engine.ensure({ key: 'chat' });
  setup.proxy.loseReplies = 2;
  const { turn, duplicate } = await engine.submit('chat', 'The codeword is osprey.');
  expect(setup.proxy.loseReplies).toBe(0);
  expect(duplicate).toBe(false);
  await ended(engine, turn);
  setup.proxy.loseReplies = 1;
  const retried = await engine.retry(turn.id);
  await ended(engine, retried.turn);
  expect((await engine.turns('chat')).map(({ n, retryOf }) => [n, retryOf])).toEqual([
    [1, null],
    [2, turn.id],
  ]);
  await expectSound(engine, 'chat');
  await engine.close();
});

test('a change of the queue whose reply is lost is made once, and is not reported as a duplicate', async () => {
  await using setup = await startProxied();
  const engine = await setup.open();
  const { turn: running } = await engine.submit('chat', '/hang');
  const { turn: one } = await engine.submit('chat', '/say one');
  const { turn: two } = await engine.submit('chat', '/say two');
  await event(engine, 'chat', 'turn.sent'); // until then the first turn is in the queue as well
  setup.proxy.loseReplies = 2;
  const { queue, duplicate } = await engine.requeue('chat', [{ turn: two.id }, { turn: one.id, prompt: '/say uno' }]);
  expect(setup.proxy.loseReplies).toBe(0);
  expect(duplicate).toBe(false);
  expect(queue.map(({ n, replaces }) => [n, replaces])).toEqual([
    [3, null],
    [4, one.id],
  ]);
  expect((await engine.turns('chat')).map(({ n }) => n)).toEqual([1, 2, 3, 4]);
  for (const { id } of [...(await engine.queue('chat')), running].toReversed()) await engine.cancel(id);
  await ended(engine, running);
  await expectSound(engine, 'chat');
  await engine.close();
});

test('an answer to a permission succeeds although its reply is lost; if somebody else has answered, it is a conflict', async () => {
  await using setup = await startProxied();
  const engine = await setup.open();
  await engine.ensure({ key: 'chat' });
  const asking = await engine.submit('chat', '/ask May I?\n/ask And this?', { permissions: 'ask' });
  const { payload: first, seq } = await event(engine, 'chat', 'permission.asked');
  setup.proxy.loseReplies = 1;
  expect(await engine.answer(first.permissionId, 'allow')).toMatchObject({ state: 'answered', optionId: 'allow' });
  const { payload: second } = await event(engine, 'chat', 'permission.asked', { after: seq });
  await setup.home.engine.answer(second.permissionId, 'allow');
  await refusedWith('conflict', engine.answer(second.permissionId, 'allow'), /already answered/);
  await ended(engine, asking.turn);
  await engine.close();
});

test('a call that must not be made twice is not repeated when its reply is lost, and the error says so', async () => {
  await using setup = await startProxied();
  const engine = await setup.open();
  setup.proxy.loseReplies = 1;
  await refusedWith('unreachable', engine.ensure({ title: 'nameless' }), /was lost before the server answered/);
  expect((await engine.list()).length).toBe(1);
  setup.proxy.loseReplies = 1;
  expect(await engine.ensure({ key: 'named' })).toMatchObject({ key: 'named' });
  await engine.close();
});

test('a reader behind a proxy that cuts connections at random gets every event once and in order', async () => {
  const seed = seedOfRun();
  await using setup = await startProxied();
  const engine = await setup.open();
  const { id } = await engine.ensure({ key: 'chat' });
  setup.proxy.cutWithin = { bytes: 6_000, random: new Random(seed) };
  const stop = new AbortController();
  const seen: PublicEvent[] = [];
  const reading = (async () => {
    for await (const one of engine.follow(id, { signal: stop.signal })) seen.push(one);
  })();
  // The turns are submitted without the proxy, so that it cuts only the stream.
  const { home } = setup;
  for (let turn = 0; turn < 20 && setup.proxy.cuts < 8; turn += 1) {
    await ended(home.engine, (await home.engine.submit(id, `/stream 20 5\n/say ${'ß🦆'.repeat(300)}`)).turn);
  }
  const all = await allEvents(home.engine, id);
  await until(`every event is seen (seed ${seed})`, () => seen.length >= all.length);
  stop.abort();
  await reading;
  expect(seen, `seed ${seed}`).toEqual(all);
  expect(setup.proxy.cuts, `seed ${seed}`).toBeGreaterThanOrEqual(8);
  await engine.close();
});

test('after a cut, one hint for all conversations replaces those that may have been missed', async () => {
  await using setup = await startProxied();
  const engine = await setup.open();
  const { id } = await engine.ensure({ key: 'chat' });
  const hints = engine.hints()[Symbol.asyncIterator]();
  const first = hints.next();
  await until('the reader of hints is connected', () => setup.home.metrics.readers > 0);
  await engine.rename(id, 'Moved');
  expect((await first).value).toEqual({ conversationId: id, seq: 2 });
  setup.proxy.cutWithin = { bytes: 0, random: new Random(1) };
  setup.proxy.loseReplies = 1;
  await setup.home.engine.rename(id, 'Moved again');
  const next = hints.next();
  await until('the connection is cut', () => setup.proxy.loseReplies === 0);
  setup.proxy.cutWithin = null;
  expect((await next).value).toEqual({ conversationId: null, seq: null });
  await engine.close();
});

test('a stream that is silent for too long is opened again', async () => {
  await using setup = await startProxied({ server: { stream: { heartbeatMs: 50 } } });
  const engine = await setup.open({ silenceMs: 300, timeoutMs: 300 });
  const { id } = await engine.ensure({ key: 'chat' });
  const events = engine.follow(id)[Symbol.asyncIterator]();
  expect((await events.next()).value).toMatchObject({ seq: 1 });
  const next = events.next();
  setup.proxy.mute = true;
  await setup.home.engine.rename(id, 'Meanwhile');
  const { connections } = setup.proxy;
  await until('the client has reconnected', () => setup.proxy.connections > connections);
  setup.proxy.mute = false;
  expect((await next).value).toMatchObject({ seq: 2, kind: 'conversation.titled' });
  await engine.close();
});

test('the client stops reading from the server while its caller takes no events, and loses none', async () => {
  await using home = await ServedHome.start({ server: { stream: { stallMs: 300 } } });
  let bytesRead = 0;
  const transport = socketTransport(home.socket);
  const counting: typeof transport = {
    ...transport,
    async send(request) {
      const answer = await transport.send(request);
      return { ...answer, chunks: () => counted(answer.chunks()) };
    },
  };
  async function* counted(chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      bytesRead += chunk.length;
      // In pieces that can end in the middle of a character, as on any network.
      for (let at = 0; at < chunk.length; at += 4_097) yield chunk.subarray(at, at + 4_097);
    }
  }
  const engine = await connect({ transport: counting, token: TOKEN });
  const { id } = await engine.ensure({ key: 'chat' });
  const events = engine.follow(id)[Symbol.asyncIterator]();
  const taken = [(await events.next()).value as PublicEvent];
  const loud = Array.from({ length: 30 }, (_, i) => `/think ${i}\n/say ${'é🦆'.repeat(17_000)}`).join('\n');
  await ended(home.engine, (await home.engine.submit(id, loud)).turn);
  await until('the server has disconnected it', () => home.metrics.readers === 0);
  expect(bytesRead).toBeLessThan(200_000); // of more than 3 MB: what the buffers of one connection hold
  const all = await allEvents(home.engine, id);
  while (taken.length < all.length) taken.push((await events.next()).value as PublicEvent);
  expect(taken).toEqual(all);
  expect(bytesRead).toBeGreaterThan(3_000_000);
  await engine.close();
});

test('a large prompt arrives unchanged; one that is too large is refused', async () => {
  await using home = await ServedHome.start();
  const engine = await connect({ transport: socketTransport(home.socket), token: TOKEN });
  const { id } = await engine.ensure({ key: 'chat' });
  const text = `/say done\n# ${'🦆é'.repeat(300_000)}`;
  const { turn } = await engine.submit(id, text);
  expect((await engine.turn(turn.id)).prompt).toEqual([{ type: 'text', text }]);
  await refusedWith('too_large', engine.submit(id, 'x'.repeat(9 * 1_048_576)), /larger than 8388608 bytes/);
  await engine.cancel(turn.id);
  await ended(engine, turn);
  expect(await engine.turns(id)).toHaveLength(1);
  await engine.close();
});

test('the client waits some time for a server that is gone, but not for one that it never reached', async () => {
  await using home = await ServedHome.start();
  const timing = { giveUpMs: 400, firstMs: 5, longestMs: 50 };
  const [engine, patient] = await Promise.all(
    [timing, { ...timing, giveUpMs: 600_000 }].map((one) =>
      connect({ transport: socketTransport(home.socket), token: TOKEN, timing: one }),
    ),
  );
  if (engine === undefined || patient === undefined) expect.unreachable();
  const { id } = await engine.ensure({ key: 'chat' });
  const events = engine.follow(id)[Symbol.asyncIterator]();
  await events.next();
  await home.down();
  const [list, next] = [engine.list(), events.next()];
  await Promise.all([
    refusedWith('unreachable', list, /does not answer \(E?[A-Z]+\)/),
    refusedWith('unreachable', next),
  ]);
  await refusedWith(
    'unreachable',
    connect({ transport: socketTransport(home.socket), token: TOKEN, timing: { giveUpMs: 600_000 } }),
  );
  const late = patient.submit(id, 'Hello.');
  await home.up();
  await ended(home.engine, (await late).turn);
  await Promise.all([engine.close(), patient.close()]);
});

test('closing the client ends its streams, and later calls are refused', async () => {
  await using home = await ServedHome.start();
  const engine = await connect({ transport: socketTransport(home.socket), token: TOKEN });
  const { id } = await engine.ensure({ key: 'chat' });
  const events = engine.follow(id)[Symbol.asyncIterator]();
  await events.next();
  const waiting = events.next();
  await engine.close();
  await engine.close();
  await refusedWith('closed', waiting);
  await refusedWith('closed', engine.list());
  await refusedWith('closed', engine.follow(id)[Symbol.asyncIterator]().next());
  await until('the reader has left', () => home.metrics.readers === 0);
});
