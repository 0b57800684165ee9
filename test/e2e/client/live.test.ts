// Live streams over connections that are cut, fall silent or come back, and over a server that restarts.
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

const chat = (conversation: string, after = 0) =>
  ({ feed: conversation, of: 'conversation', conversation, after }) as const;

/** A live stream through a proxy, whose frames are all kept. */
async function watched(options: ServedOptions = {}) {
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

test('a connection that is cut again and again: every event of every feed once, and in order', async () => {
  const seed = seedOfRun();
  await using world = await watched({ server: { stream: { retryMs: 50 } } });
  const keys = ['one', 'two', 'three'];
  for (const key of keys) await world.home.engine.ensure({ key });
  world.proxy.cutWithin = { bytes: 6_000, random: new Random(seed) };
  const live = world.read([chat('one'), { feed: 'hints', of: 'hints' }]);
  live.follow(chat('two'));
  // At least two turns: on a busy machine, the first may be cut as often as is needed.
  for (let turn = 0; turn < 2 || (turn < 20 && world.proxy.cuts < 8); turn += 1) {
    await Promise.all(keys.map((key) => run(world.home.engine, key, `/stream 10 5\n/say ${'ß🦆'.repeat(200)}`)));
    if (turn === 1) live.follow(chat('three'));
  }
  for (const key of keys) {
    const all = await allEvents(world.home.engine, key);
    await until(`every event of ${key} is seen (seed ${seed})`, () => world.events(key).length >= all.length);
    expect(world.events(key), `seed ${seed}`).toEqual(all);
  }
  expect(world.proxy.cuts, `seed ${seed}`).toBeGreaterThanOrEqual(8);
  live.close();
  await world.ended();
  await until('the server has no reader left', () => world.home.metrics.readers === 0);
});

test('a server that restarts is waited for, and says how much was missed', async () => {
  await using world = await watched();
  await run(world.home.engine, 'chat', 'Hello.');
  const live = world.read([chat('chat'), { feed: 'hints', of: 'hints' }]);
  const { length: before } = await allEvents(world.home.engine, 'chat');
  await until('it has everything', () => world.events('chat').length === before);
  const openedAt = live.state.since;
  await world.home.down();
  await until('it waits', () => live.state.state === 'waiting');
  expect(live.state).toMatchObject({
    failure: { code: 'unreachable', hint: expect.stringContaining('until it answers') },
  });
  const { since } = live.state;
  expect(since).toBeGreaterThanOrEqual(openedAt);
  live.follow(chat('later')); // while there is no connection
  await until('it has tried again', () => world.states.filter((state) => state === 'waiting').length > 3);
  expect(live.state.since).toBe(since); // however often it was tried
  await world.home.up();
  await run(world.home.engine, 'chat', 'More.');
  await until('it is open', () => live.state.state === 'open');
  // It was asked for before it existed. Whoever asks again, once it does, gets all of it.
  await until('that feed has ended', () => world.frames.some(({ kind, feed }) => kind === 'ended' && feed === 'later'));
  await run(world.home.engine, 'later', 'Hello.');
  live.follow(chat('later'));
  for (const key of ['chat', 'later']) {
    const all = await allEvents(world.home.engine, key);
    await until(`it has everything of ${key}`, () => world.events(key).length >= all.length);
    expect(world.events(key)).toEqual(all);
  }
  const began = world.frames.filter((frame) => frame.kind === 'began' && frame.feed === 'chat');
  expect(began.length).toBeGreaterThanOrEqual(2);
  expect(world.frames.filter((frame) => frame.kind === 'hint' && frame.hint.conversationId === null).length).toBe(2);
  live.close();
  await world.ended();
});

test('a stream that is silent although it seems open is begun again: by itself, or at once when told to look', async () => {
  await using world = await watched({ server: { stream: { heartbeatMs: 200 } } });
  await world.home.engine.ensure({ key: 'chat' });
  const live = world.read([chat('chat')]);
  await until('the first event', () => world.events('chat').length === 1);
  world.proxy.mute = true;
  const { came, spokeAt } = world.proxy;
  await until('it has come back by itself', () => world.proxy.came > came);
  expect(performance.now() - spokeAt).toBeGreaterThan(300);
  world.proxy.mute = false;
  await until('it is open', () => live.state.state === 'open');
  live.wake(); // nothing is wrong: nothing happens
  expect(live.state.state).toBe('open');
  await run(world.home.engine, 'chat', 'Hello.');
  const all = await allEvents(world.home.engine, 'chat');
  await until('every event', () => world.events('chat').length >= all.length);
  expect(world.events('chat')).toEqual(all);
});

test('whoever is told to look does not wait for the next try', async () => {
  await using home = await ServedHome.start({ server: { stream: { retryMs: 600_000 } } });
  await home.engine.ensure({ key: 'chat' });
  const timing = { firstMs: 600_000, longestMs: 600_000 };
  const engine = await connect({ transport: socketTransport(home.socket), token: TOKEN, timing });
  const live = httpLiveStreams(engine.caller).live('local', [chat('chat')]);
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

test('a change of the feeds whose reply is lost is made all the same', async () => {
  await using world = await watched();
  for (const key of ['one', 'two']) await run(world.home.engine, key, 'Hello.');
  const live = world.read([chat('one')]);
  const { length } = await allEvents(world.home.engine, 'one');
  await until('it has everything of one', () => world.events('one').length === length);
  world.proxy.loseReplies = 1;
  live.follow(chat('two'));
  await until('it has everything of two', () => world.events('two').length >= length);
  expect(world.events('two')).toEqual(await allEvents(world.home.engine, 'two'));
  expect(world.events('one')).toHaveLength(length);
});

test('a stream that the server has no more is opened anew when its feeds change', async () => {
  await using home = await ServedHome.start();
  for (const key of ['one', 'two']) await run(home.engine, key, 'Hello.');
  const plain = socketTransport(home.socket);
  let opened = 0;
  const forgetful: typeof plain = {
    ...plain,
    send(request) {
      if (request.path === '/v1/streams') opened += 1;
      return plain.send({ ...request, path: request.path.replace(/^(.v1.streams.).+/, '$1forgotten') });
    },
  };
  const engine = await connect({ transport: forgetful, token: TOKEN });
  const live = httpLiveStreams(engine.caller).live('local', [chat('one')]);
  const all = await allEvents(home.engine, 'two');
  const seen: number[] = [];
  for await (const frame of live) {
    if (frame.kind === 'began' && frame.feed === 'one' && opened === 1) live.follow(chat('two'));
    if (frame.kind === 'event' && frame.feed === 'two') seen.push(frame.event.seq);
    if (seen.length === all.length) break;
  }
  expect(seen).toEqual(all.map(({ seq }) => seq));
  expect(opened).toBe(2);
  await engine.close();
});

test('credentials that are no longer valid end it; closing the client does, too', async () => {
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
