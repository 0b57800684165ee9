// Live streams: several feeds over one connection.
import { expect, test } from 'vitest';
import { until } from '../../faults/harness/until.ts';
import { run } from '../support/conversations.ts';
import { ServedHome } from './support/served-home.ts';

const feedOf = (conversation: string, after = 0) => ({ feed: conversation, of: 'conversation', conversation, after });

test('a stream with many feeds counts as one reader, and another request changes its feeds without a reconnect', async () => {
  await using home = await ServedHome.start({ server: { mostReaders: 2 } });
  const { caller } = home;
  for (const key of ['one', 'two']) await run(home.engine, key, 'Hello.');
  const frames = caller.frames([{ feed: 'hints', of: 'hints' }, { feed: 'board', of: 'board' }, feedOf('one')]);
  const { streamId: stream, heartbeatMs } = await frames.next('opened');
  expect(heartbeatMs).toBe(15_000);
  expect(await frames.next('event')).toMatchObject({ feed: 'one', event: { seq: 1 } });
  expect(home.metrics.readers).toBe(1);
  const feeds = [feedOf('two', 2), feedOf('one', 99)]; // "one" is open already, so it continues where it is
  expect(await caller.ok('POST', `/streams/${stream}`, { feeds })).toEqual({ feeds: ['one', 'two'] });
  const seqs: Record<string, number[]> = { one: [1], two: [] };
  const { lastSeq } = await caller.ok('GET', '/conversations/one');
  while (seqs.one?.at(-1) !== lastSeq || seqs.two?.at(-1) !== lastSeq) {
    const { feed, event } = await frames.next('event');
    seqs[feed]?.push(event.seq);
  }
  const all = Array.from({ length: lastSeq }, (_, index) => index + 1);
  expect(seqs).toEqual({ one: all, two: all.slice(2) });
  expect(home.metrics.readers).toBe(1);
  await frames.return();
  await until('the reader has left', () => home.metrics.readers === 0);
  expect(await caller.post(`/streams/${stream}`, { feeds: [] })).toMatchObject({
    status: 404,
    body: { code: 'not_found', hint: expect.stringContaining('Open another one') },
  });
});

test('a stream belongs to its owner, and ends when its key is revoked', async () => {
  await using home = await ServedHome.start({ server: { stream: { checkMs: 20 } } });
  const ann = await home.key('ann', ['read', 'prompt']);
  const bob = await home.key('bob', ['read', 'admin']);
  await ann.caller.ok('POST', '/conversations', { key: 'hers' });
  const frames = ann.caller.frames([feedOf('hers')]);
  const { streamId: stream } = await frames.next('opened');
  for (const caller of [bob.caller, home.caller]) {
    expect((await caller.post(`/streams/${stream}`, { feeds: [] })).status).toBe(404);
    const foreign = caller.frames([feedOf('hers')]);
    expect(await foreign.next('began', 'event', 'ended')).toMatchObject({ failure: { code: 'not_found' } });
    await foreign.return();
  }
  expect(await frames.next('event')).toMatchObject({ event: { seq: 1 } });
  await home.revoke('ann', ann.id);
  expect(await frames.next('event')).toBeNull();
  await until('the reader has left', () => home.metrics.readers === 0);
});

test('an invalid set of feeds is refused, and so are more than 100 feeds', async () => {
  await using home = await ServedHome.start();
  const many = Array.from({ length: 101 }, (_, index) => ({ feed: `${index}`, of: 'hints' }));
  const wrong = [{}, { feeds: [{ feed: 'a' }] }, { feeds: [{ feed: 'a', of: 'conversation' }] }, { feeds: many }];
  const twice = { feeds: [feedOf('a'), feedOf('a')] };
  for (const body of [...wrong, twice, { feeds: [{ ...feedOf('a'), after: -1 }] }]) {
    expect(await home.caller.post('/streams', body)).toMatchObject({ status: 400, body: { code: 'invalid' } });
  }
});

test('the events of a long conversation do not delay those of another one', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  await run(
    home.engine,
    'long',
    Array.from({ length: 500 }, (_, index) => `/think ${index}\n/tool read ${index}`).join('\n'),
  );
  await run(home.engine, 'short', 'Hello.');
  const [long, short] = await Promise.all(['long', 'short'].map((key) => caller.ok('GET', `/conversations/${key}`)));
  expect(long.lastSeq).toBeGreaterThan(1_000);
  const frames = caller.frames([feedOf('long'), feedOf('short')]);
  let longEvents = 0;
  for (let last = 0; last < short.lastSeq; ) {
    const { feed, event } = await frames.next('event');
    if (feed === 'short') last = event.seq;
    else longEvents += 1;
  }
  // On a busy machine a read waits for the next turn of the event loop. A page of the other feed, 200 events, may pass meanwhile.
  expect(longEvents).toBeLessThan(long.lastSeq / 2);
  await frames.return();
});
