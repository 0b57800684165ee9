import { expect, test } from 'vitest';
import { codewordsIn, refusedWith, run, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home, ONE_STORAGE } from '../support/home.ts';

const SHARED = { a: { dir: ONE_STORAGE }, b: { dir: ONE_STORAGE } };

test('two agents share a storage: a session in use by one conversation is refused to another, with the reason', async () => {
  await using home = new Home(SHARED);
  const { engine } = await home.open();
  await engine.ensure({ key: 'one', agent: 'a' });
  const { turn } = await run(engine, 'one', 'The codeword is amber.');
  const session = turn.sessionId ?? expect.unreachable();
  for (const caller of [engine, engine.as('ann')]) {
    await caller.ensure({ key: 'two', agent: 'b' });
    const refused = await run(caller, 'two', 'The codeword is birch.', { session });
    expect(refused.turn).toMatchObject({ state: 'failed', sent: null, failure: { code: 'refused' } });
    expect(refused.turn.failure?.message).toBe(
      `The session ${session} of b cannot be used: it belongs to another conversation.`,
    );
    expect(refused.receipt?.rung).toBe('none');
  }
  expect(codewordsIn((await run(engine, 'one', WHICH_CODEWORDS)).reply)).toEqual(['amber']);
});

test('a session of a conversation is refused to others also after a restart', async () => {
  await using home = new Home(SHARED);
  const before = await home.open();
  const { turn } = await before.conversation('one', { agent: 'a' }).ask('The codeword is amber.');
  await before.close();
  const tl = await home.open();
  const session = turn.sessionId ?? expect.unreachable();
  const two = tl.conversation('two', { agent: 'b' });
  // The first prompt of a conversation is refused before anything of it is stored, a later one when it runs.
  await refusedWith('refused', two.ask(WHICH_CODEWORDS, { session }), /in use elsewhere/);
  await refusedWith('not_found', two.get());
  await two.ensure();
  await refusedWith('refused', two.ask(WHICH_CODEWORDS, { session }), /belongs to another conversation/);
});

test('an agent that keeps its sessions in the sandbox has a storage for each sandbox', async () => {
  await using home = new Home({ a: {} });
  const { engine } = await home.open();
  for (const key of ['one', 'two']) await engine.ensure({ key });
  await run(engine, 'one', 'The codeword is amber.');
  await run(engine, 'two', 'The codeword is birch.');
  const storages = home.query<{ storage: string }>('SELECT storage FROM sessions');
  expect(new Set(storages.map(({ storage }) => storage)).size).toBe(2);
});

test('a session that a conversation has used with one agent is not adopted with the other, whatever its state', async () => {
  await using home = new Home(SHARED);
  const { engine } = await home.open();
  await engine.ensure({ key: 'one' });
  const { turn } = await run(engine, 'one', 'The codeword is amber.', { agent: 'a' });
  const session = turn.sessionId ?? expect.unreachable();
  const refused = () =>
    refusedWith(
      'refused',
      engine.submit('one', WHICH_CODEWORDS, { agent: 'b', session }),
      /has used the session .* "a"/,
    );
  await refused();
  await run(engine, 'one', 'Hello.', { agent: 'a', restore: { rebuild: true, rung: 'transcript' } });
  await run(engine, 'one', '/die', { agent: 'a' });
  await refused();
  expect((await engine.show('one')).turns.some(({ imported }) => imported)).toBe(false);
  expect(codewordsIn((await run(engine, 'one', WHICH_CODEWORDS, { agent: 'b' })).reply)).toEqual(['amber']);
});
