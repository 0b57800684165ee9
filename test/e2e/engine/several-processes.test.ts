import { expect, test } from 'vitest';
import type { Agent } from '../../../src/ports/agent.ts';
import type { Store } from '../../../src/ports/store.ts';
import {
  allEvents,
  codewordsIn,
  ended,
  expectSound,
  refusedWith,
  run,
  until,
  untilReleased,
  WHICH_CODEWORDS,
} from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { sentTo } from '../support/stored.ts';

const prompt = (word: string) => `The codeword is ${word}. ${WHICH_CODEWORDS}`;

test.each([
  ['that keep their sessions warm', 8],
  ['that keep no sessions warm', 0],
])(
  'two processes %s submit ten prompts at once: each is answered once, in order, with all earlier ones in its context',
  async (_, maxWarm) => {
    await using home = new Home();
    const [one, two] = await Promise.all([home.host({ maxWarm }), home.host({ maxWarm })]);
    await one.engine.ensure({ key: 'chat' });
    const words = Array.from({ length: 10 }, (_, i) => `word-${i}`);
    const sent = await Promise.all(
      words.map((word, i) => (i % 2 === 0 ? one : two).engine.submit('chat', prompt(word))),
    );
    const { engine } = await home.open();
    for (const { turn } of sent) expect((await ended(engine, turn)).state).toBe('completed');
    const { turns } = await engine.show('chat');
    const order = turns.map((turn) => /codeword is (\S+)\./.exec(JSON.stringify(turn.prompt))?.[1] ?? '');
    expect(order.toSorted()).toEqual(words.toSorted());
    expect(turns.map(({ reply }) => codewordsIn(reply))).toEqual(order.map((_, i) => order.slice(0, i + 1)));
    const sends = (await allEvents(engine, 'chat')).filter(({ kind }) => kind === 'turn.sent');
    expect(sends.length).toBe(10);
    await expectSound(engine, 'chat');
  },
);

test('a request id that comes twice, from two processes at once, is one turn', async () => {
  await using home = new Home();
  const [one, two] = await Promise.all([home.host(), home.host()]);
  await one.engine.ensure({ key: 'chat' });
  const [a, b] = await Promise.all([one, two].map((host) => host.engine.submit('chat', 'Hello.', { requestId: 'r1' })));
  expect(a?.turn.id).toBe(b?.turn.id);
  expect(a?.seq).toBe(b?.seq);
  expect([a?.duplicate, b?.duplicate].toSorted()).toEqual([false, true]);
  const { engine } = await home.open();
  await ended(engine, a?.turn ?? expect.unreachable());
  expect((await engine.turns('chat')).length).toBe(1);
});

test('a request id is remembered after the end, and for another prompt it is a conflict', async () => {
  await using home = new Home();
  const { engine } = await home.open();
  for (const key of ['chat', 'other']) await engine.ensure({ key });
  const { turn } = await run(engine, 'chat', 'Hello.', { requestId: 'r1' });
  expect(await engine.submit('chat', 'Hello.', { requestId: 'r1' })).toMatchObject({
    duplicate: true,
    turn: { id: turn.id, state: 'completed' },
  });
  await refusedWith(
    'conflict',
    engine.submit('chat', 'Goodbye.', { requestId: 'r1' }),
    /already used for another request/,
  );
  await refusedWith('conflict', engine.submit('other', 'Hello.', { requestId: 'r1' }));
  await refusedWith('invalid', engine.submit('chat', 'Hello.', { requestId: '' }));
  const bob = engine.as('bob');
  await bob.ensure({ key: 'chat' });
  expect(await bob.submit('chat', 'Hello.', { requestId: 'r1' })).toMatchObject({ duplicate: false });
});

test('a turn that was accepted and not sent is run by another process when its own was killed', async () => {
  await using home = new Home({ claude: { startMs: 600_000 } });
  const first = await home.host();
  await first.engine.ensure({ key: 'chat' });
  const { turn } = await first.engine.submit('chat', prompt('amber'));
  await first.calls.followUntil('chat', 0, 'turn.started');
  await first.kill();
  const settings = { agents: { claude: { adapter: 'scripted' } } } as const;
  const { engine } = await home.open({ claims: 'all' }, { settings });
  expect(await ended(engine, turn)).toMatchObject({ state: 'completed', attempt: 2 });
  expect(codewordsIn((await engine.answerOf(turn.id)).reply)).toEqual(['amber']);
  await expectSound(engine, 'chat');
});

test('a process that runs only its own turns does not run those of others', async () => {
  await using home = new Home();
  const [idle, busy] = await Promise.all([home.open({ claims: 'own' }), home.host({ claims: 'own', maxWarm: 0 })]);
  const { turn } = await busy.calls.ask('chat', prompt('amber'));
  expect(codewordsIn((await idle.engine.answerOf(turn.id)).reply)).toEqual(['amber']);
  // If the idle process had run the turn, it would keep the session warm, and stay in the list.
  await untilReleased(idle.engine, 'chat');
  await until('nobody is listed as a worker', () => home.query('SELECT id FROM workers').length === 0);
});

test('a process that keeps nothing warm runs a conversation up to its own turn, and leaves the rest to others', async () => {
  await using home = new Home();
  const submitter = await home.engine({}, { maxRunning: 0 }); // it submits turns, and runs none
  const one = await home.open({ claims: 'own', maxWarm: 0 });
  await one.engine.ensure({ key: 'chat' });
  const before = await submitter.submit('chat', '/stream 20 10');
  const own = await one.engine.submit('chat', 'Hello.');
  const after = await submitter.submit('chat', 'Hello again.');
  expect((await ended(one.engine, own.turn)).state).toBe('completed');
  expect((await one.engine.turn(before.turn.id)).state).toBe('completed');
  await until('nobody is listed as a worker', () => home.query('SELECT id FROM workers').length === 0);
  expect((await one.engine.turn(after.turn.id)).state).toBe('queued');
});

test('a turn for an agent that only another process has does not wait until the holder is idle', async () => {
  await using home = new Home({ a: {} });
  const one = await home.open();
  await one.conversation('chat').ask('The codeword is amber.');
  expect((await one.conversation('chat').summary()).lock).not.toBeNull(); // it keeps its session warm
  const settings = { agents: { a: { adapter: 'scripted' }, b: { adapter: 'scripted' } } } as const;
  const two = await home.open({}, { settings });
  const { reply, receipt } = await two.conversation('chat', { agent: 'b' }).ask(WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(receipt).toMatchObject({ agent: 'b', rung: 'transcript' });
});

test('a prompt for an agent that is not in the settings is refused, and does not wait for ever', async () => {
  await using home = new Home({ a: {}, b: {} });
  const both = await home.open();
  await both.conversation('chat', { agent: 'b' }).ask('Hello.');
  await both.close();
  const { engine } = await home.open({}, { settings: { agents: { a: { adapter: 'scripted' } } } });
  await refusedWith('agent_unavailable', engine.submit('chat', 'Hello.'), /There is no agent "b"/);
  expect((await engine.summary('chat')).open).toBe(0);
  expect((await run(engine, 'chat', 'Hello.', { agent: 'a' })).turn.state).toBe('completed');
});

test('a worker that loses its lease before it restores does not end the agent of the next holder', async () => {
  await using home = new Home();
  const [readsTraits, mayReadTraits, lossNoticed, released] = [0, 1, 2, 3].map(() =>
    Promise.withResolvers<void>(),
  ) as Gates;
  let isSlow = false;
  let renews = false;
  const agent = (real: Agent): Agent => ({
    ...real,
    async traits(sandbox) {
      if (isSlow) readsTraits.resolve();
      if (isSlow) await mayReadTraits.promise;
      return real.traits(sandbox);
    },
  });
  const store = (real: Store): Store => ({
    ...real,
    async renew(...args) {
      const lost = renews ? await real.renew(...args) : [];
      if (lost.length > 0) setImmediate(lossNoticed.resolve);
      return lost;
    },
    async release(...args) {
      await real.release(...args);
      released.resolve();
    },
  });
  const engine = await home.engine({ agent, store }, { leaseMs: 300 });
  await engine.ensure({ key: 'chat' });
  isSlow = true;
  const { turn } = await engine.submit('chat', 'Hello.');
  await readsTraits.promise;
  const next = await home.host({ claims: 'all' });
  expect((await ended(engine, turn)).state).toBe('completed');
  renews = true;
  await lossNoticed.promise;
  mayReadTraits.resolve();
  await released.promise;
  const again = await next.calls.ask('chat', 'Hello again.');
  expect(sentTo(home, again.turn.id).pid).toBe(sentTo(home, turn.id).pid);
});

type Gate = PromiseWithResolvers<void>;
type Gates = [Gate, Gate, Gate, Gate];
