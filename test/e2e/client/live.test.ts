// Live streams over connections that are cut or silent, and with a server that restarts.
import { expect, test } from 'vitest';
import { connect } from '../../../src/clients/http/connect.ts';
import { socketTransport } from '../../../src/clients/http/connection/node-transport.ts';
import { httpLiveStreams } from '../../../src/clients/http/live.ts';
import type { LiveFrame } from '../../../src/core/public/live-frame.ts';
import type { Live, LiveState } from '../../../src/ports/engine/live.ts';
import { Random, seedOfRun } from '../../faults/harness/random.ts';
import { until } from '../../faults/harness/until.ts';
import { ServedHome, type ServedOptions, TOKEN } from '../http/support/served-home.ts';
import { allEvents, refusedWith, run } from '../support/conversations.ts';
import { CuttingProxy } from './support/cutting-proxy.ts';

const feedOf = (conversation: string, after = 0) =>
  ({ feed: conversation, of: 'conversation', conversation, after }) as const;

/** A server behind a proxy. `read` opens a live stream through the proxy, and keeps all its frames. */
async function startWatching(options: ServedOptions = {}) {
  const home = await ServedHome.start(options);
  const proxy = await CuttingProxy.between(home.path, home.socket);
  const timing = { firstMs: 5, longestMs: 50, timeoutMs: 1_000 };
  const engine = await connect({ transport: socketTransport(proxy.path), token: TOKEN, timing });
  const frames: LiveFrame[] = [];
  const states: LiveState['state'][] = [];
  const reading: Promise<void>[] = [];
  return {
    ...{ home, proxy, frames, states },
    read(feeds: Parameters<ReturnType<typeof httpLiveStreams>['live']>[1]): Live {
      const live = httpLiveStreams(engine.caller).live('local', feeds);
      live.onState(({ state }) => states.push(state));
      reading.push(
        (async () => {
          for await (const frame of live) frames.push(frame);
        })(),
      );
      return live;
    },
    ended: () => Promise.all(reading),
    events: (feed: string) =>
      frames.flatMap((frame) => (frame.feed === feed && frame.kind === 'event' ? [frame.event] : [])),
    async [Symbol.asyncDispose]() {
      await engine.close();
      await Promise.allSettled(reading);
      await proxy[Symbol.asyncDispose]();
      await home[Symbol.asyncDispose]();
    },
  };
}

test('over a connection that is cut again and again, every feed gets every event once and in order', async () => {
  const seed = seedOfRun();
  await using setup = await startWatching({ server: { stream: { retryMs: 50 } } });
  const keys = ['one', 'two', 'three'];
  for (const key of keys) await setup.home.engine.ensure({ key });
  setup.proxy.cutWithin = { bytes: 6_000, random: new Random(seed) };
  const live = setup.read([feedOf('one'), { feed: 'hints', of: 'hints' }]);
  live.follow(feedOf('two'));
  // At least two turns: on a busy machine, the first may be cut as often as is needed.
  for (let turn = 0; turn < 2 || (turn < 20 && setup.proxy.cuts < 8); turn += 1) {
    await Promise.all(keys.map((key) => run(setup.home.engine, key, `/stream 10 5\n/say ${'ß🦆'.repeat(200)}`)));
    if (turn === 1) live.follow(feedOf('three'));
  }
  for (const key of keys) {
    const all = await allEvents(setup.home.engine, key);
    await until(`every event of ${key} is seen (seed ${seed})`, () => setup.events(key).length >= all.length);
    expect(setup.events(key), `seed ${seed}`).toEqual(all);
  }
  expect(setup.proxy.cuts, `seed ${seed}`).toBeGreaterThanOrEqual(8);
  live.close();
  await setup.ended();
  await until('the server has no reader left', () => setup.home.metrics.readers === 0);
});

test('a stream waits for a server that restarts, and then continues all its feeds', async () => {
  await using setup = await startWatching();
  await run(setup.home.engine, 'chat', 'Hello.');
  const live = setup.read([feedOf('chat'), { feed: 'hints', of: 'hints' }]);
  const { length: before } = await allEvents(setup.home.engine, 'chat');
  await until('it has everything', () => setup.events('chat').length === before);
  const openedAt = live.state.since;
  await setup.home.down();
  await until('it waits', () => live.state.state === 'waiting');
  expect(live.state).toMatchObject({
    failure: { code: 'unreachable', hint: expect.stringContaining('until it answers') },
  });
  const { since } = live.state;
  expect(since).toBeGreaterThanOrEqual(openedAt);
  live.follow(feedOf('later')); // without a connection
  await until('it has tried again', () => setup.states.filter((state) => state === 'waiting').length > 3);
  expect(live.state.since).toBe(since); // further tries do not change it
  await setup.home.up();
  await run(setup.home.engine, 'chat', 'More.');
  await until('it is open', () => live.state.state === 'open');
  // The feed was requested before the conversation existed, so it has ended. Following it again gives all events.
  await until('that feed has ended', () => setup.frames.some(({ kind, feed }) => kind === 'ended' && feed === 'later'));
  await run(setup.home.engine, 'later', 'Hello.');
  live.follow(feedOf('later'));
  for (const key of ['chat', 'later']) {
    const all = await allEvents(setup.home.engine, key);
    await until(`it has everything of ${key}`, () => setup.events(key).length >= all.length);
    expect(setup.events(key)).toEqual(all);
  }
  const began = setup.frames.filter((frame) => frame.kind === 'began' && frame.feed === 'chat');
  expect(began.length).toBeGreaterThanOrEqual(2);
  expect(setup.frames.filter((frame) => frame.kind === 'hint' && frame.hint.conversationId === null).length).toBe(2);
  live.close();
  await setup.ended();
});

test('a stream that is silent although it seems open is opened again by itself; wake() does nothing while it is open', async () => {
  await using setup = await startWatching({ server: { stream: { heartbeatMs: 200 } } });
  await setup.home.engine.ensure({ key: 'chat' });
  const live = setup.read([feedOf('chat')]);
  await until('the first event', () => setup.events('chat').length === 1);
  setup.proxy.mute = true;
  const { connections, lastPassedAt } = setup.proxy;
  await until('it has reconnected by itself', () => setup.proxy.connections > connections);
  expect(performance.now() - lastPassedAt).toBeGreaterThan(300); // longer than one heartbeat, 200 ms
  setup.proxy.mute = false;
  await until('it is open', () => live.state.state === 'open');
  live.wake();
  expect(live.state.state).toBe('open');
  await run(setup.home.engine, 'chat', 'Hello.');
  const all = await allEvents(setup.home.engine, 'chat');
  await until('every event', () => setup.events('chat').length >= all.length);
  expect(setup.events('chat')).toEqual(all);
});

test('wake() makes a stream that waits try again at once', async () => {
  await using home = await ServedHome.start({ server: { stream: { retryMs: 600_000 } } });
  await home.engine.ensure({ key: 'chat' });
  const timing = { firstMs: 600_000, longestMs: 600_000 };
  const engine = await connect({ transport: socketTransport(home.socket), token: TOKEN, timing });
  const live = httpLiveStreams(engine.caller).live('local', [feedOf('chat')]);
  const frames = live[Symbol.asyncIterator]();
  await frames.next();
  await frames.next();
  const next = frames.next();
  await home.down();
  await until('it waits', () => live.state.state === 'waiting');
  await home.up();
  await until('it is open', () => {
    live.wake();
    return live.state.state === 'open';
  });
  expect((await next).value).toMatchObject({ kind: 'began', seq: 1 });
  await engine.close();
});

test('a change of the feeds takes effect although its reply is lost', async () => {
  await using setup = await startWatching();
  for (const key of ['one', 'two']) await run(setup.home.engine, key, 'Hello.');
  const live = setup.read([feedOf('one')]);
  const { length } = await allEvents(setup.home.engine, 'one');
  await until('it has everything of one', () => setup.events('one').length === length);
  setup.proxy.loseReplies = 1;
  live.follow(feedOf('two'));
  await until('it has everything of two', () => setup.events('two').length >= length);
  expect(setup.events('two')).toEqual(await allEvents(setup.home.engine, 'two'));
  expect(setup.events('one')).toHaveLength(length);
});

test('a stream that the server no longer has is opened again when its feeds change', async () => {
  await using home = await ServedHome.start();
  for (const key of ['one', 'two']) await run(home.engine, key, 'Hello.');
  const transport = socketTransport(home.socket);
  let opened = 0;
  // Changes of the feeds name a stream that the server does not have.
  const withUnknownStream: typeof transport = {
    ...transport,
    send(request) {
      if (request.path === '/v1/streams') opened += 1;
      return transport.send({ ...request, path: request.path.replace(/^(.v1.streams.).+/, '$1forgotten') });
    },
  };
  const engine = await connect({ transport: withUnknownStream, token: TOKEN });
  const live = httpLiveStreams(engine.caller).live('local', [feedOf('one')]);
  const all = await allEvents(home.engine, 'two');
  const seen: number[] = [];
  for await (const frame of live) {
    if (frame.kind === 'began' && frame.feed === 'one' && opened === 1) live.follow(feedOf('two'));
    if (frame.kind === 'event' && frame.feed === 'two') seen.push(frame.event.seq);
    if (seen.length === all.length) break;
  }
  expect(seen).toEqual(all.map(({ seq }) => seq));
  expect(opened).toBe(2);
  await engine.close();
});

test('a stream ends when its key is revoked, and when the client is closed', async () => {
  await using home = await ServedHome.start({ server: { stream: { checkMs: 20 } } });
  const { id, key } = await home.key('ann', ['read']);
  const engine = await connect({ transport: socketTransport(home.socket), token: key });
  const live = httpLiveStreams(engine.caller).live('ann', [{ feed: 'hints', of: 'hints' }]);
  const frames = live[Symbol.asyncIterator]();
  await frames.next();
  await home.revoke('ann', id);
  await refusedWith('refused', frames.next());
  expect(live.state).toMatchObject({ state: 'closed', failure: { code: 'refused' } });
  const other = await connect({ transport: socketTransport(home.socket), token: TOKEN });
  const again = httpLiveStreams(other.caller)
    .live('local', [{ feed: 'hints', of: 'hints' }])
    [Symbol.asyncIterator]();
  await again.next();
  const waiting = again.next();
  await other.close();
  await refusedWith('closed', waiting);
  await engine.close();
});
