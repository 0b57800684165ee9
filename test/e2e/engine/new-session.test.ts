import { expect, test } from 'vitest';
import type { ScriptedOptions } from '../../../src/agents/scripted/options.ts';
import type { Agent } from '../../../src/ports/agent.ts';
import { codewordsIn, ended, refusedWith, run, until, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home, ONE_STORAGE } from '../support/home.ts';

// The caller may choose the id of a new session. It is recorded before it is used, and used once.

const ASSIGNED_IDS: Partial<ScriptedOptions> = { ids: 'assigned', dir: ONE_STORAGE };
const [ONE, TWO, THREE] = [1, 2, 3].map((n) => `00000000-0000-4000-8000-00000000000${n}`) as [string, string, string];

test('a new session has the id that the caller chose, and the history', async () => {
  await using home = new Home({ a: ASSIGNED_IDS });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  const first = await run(engine, 'chat', 'The codeword is amber.', { newSession: ONE });
  expect(first.turn).toMatchObject({ sessionId: ONE, options: { newSession: ONE } });
  expect(first.receipt).toMatchObject({ rung: 'new', sessionId: ONE });
  // The next turn stays in it, until another one is asked for.
  expect((await run(engine, 'chat', 'The codeword is birch.')).turn.sessionId).toBe(ONE);
  const other = await run(engine, 'chat', WHICH_CODEWORDS, { newSession: TWO });
  expect(codewordsIn(other.reply)).toEqual(['amber', 'birch']);
  expect(other.receipt).toMatchObject({ rung: 'transcript', sessionId: TWO, carried: 2, dropped: 0 });
  expect((await engine.sessions('chat')).map(({ id }) => id)).toEqual([TWO, ONE]);
  expect(codewordsIn((await run(engine, 'chat', WHICH_CODEWORDS)).reply)).toEqual(['amber', 'birch']);
});

test('an id that was used before is refused to all conversations and owners, and so is one that an open turn has chosen', async () => {
  await using home = new Home({ a: ASSIGNED_IDS });
  const { engine } = await home.open();
  for (const key of ['chat', 'other']) await engine.ensure({ key });
  await run(engine, 'chat', 'Hello.', { newSession: ONE });
  const ann = engine.as('ann');
  await ann.ensure({ key: 'hers' });
  for (const [caller, key] of [
    [engine, 'chat'],
    [engine, 'other'],
    [ann, 'hers'],
  ] as const)
    await refusedWith('refused', caller.submit(key, 'Hello.', { newSession: ONE }), /was used before/);
  const { turn } = await engine.submit('chat', '/hang', { newSession: TWO, requestId: 'r' });
  await refusedWith('refused', engine.submit('other', 'Hello.', { newSession: TWO }), /an open turn has chosen it/);
  expect((await engine.submit('chat', '/hang', { newSession: TWO, requestId: 'r' })).duplicate).toBe(true);
  await engine.cancel(turn.id);
  await ended(engine, turn);
  // A retry does not choose the id again.
  const again = await engine.retry(turn.id);
  expect(again.turn.options).not.toHaveProperty('newSession');
  await engine.cancel(again.turn.id);
});

test('a turn fails if the agent already has a session with the chosen id', async () => {
  await using home = new Home({ a: ASSIGNED_IDS });
  await using elsewhere = new Home({ a: { ...ASSIGNED_IDS, dir: `${home.sandboxes}/storage` } });
  const { engine: there } = await elsewhere.open();
  await there.ensure({ key: 'theirs' });
  await run(there, 'theirs', 'The codeword is amber.', { newSession: ONE });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  const { turn, receipt } = await run(engine, 'chat', WHICH_CODEWORDS, { newSession: ONE });
  expect(turn).toMatchObject({ state: 'failed', sent: null, failure: { code: 'refused' } });
  expect(receipt?.tried).toMatchObject([{ rung: 'new', failure: 'the agent already has a session with this id' }]);
  expect(codewordsIn((await run(there, 'theirs', WHICH_CODEWORDS)).reply)).toEqual(['amber']);
});

test('a chosen id is refused for an agent that issues ids itself, and together with an existing session', async () => {
  await using home = new Home({ a: {}, b: ASSIGNED_IDS });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat', agent: 'a' });
  await refusedWith(
    'refused',
    engine.submit('chat', 'Hello.', { newSession: ONE }),
    /issues the ids of its sessions itself/,
  );
  const both = engine.submit('chat', 'Hello.', { newSession: ONE, session: TWO, agent: 'b' });
  await refusedWith('invalid', both, /either continues in a session or opens a new one/);
  expect(await engine.turns('chat')).toEqual([]);
  // A first prompt to a key is refused as well, and creates nothing.
  const first = engine.submit('another', 'Hello.', { newSession: ONE, agent: 'a' });
  await refusedWith('refused', first, /issues the ids of its sessions itself/);
  await refusedWith('not_found', engine.conversation('another'), /another/);
  expect((await run(engine, 'chat', 'Hello.', { newSession: ONE, agent: 'b' })).turn.sessionId).toBe(ONE);
});

test('the id is recorded before the agent gets it; if the process is killed then, the next process opens that session', async () => {
  await using home = new Home({ a: { ...ASSIGNED_IDS, startMs: 600_000 } });
  const host = await home.host();
  await host.engine.ensure({ key: 'chat' });
  const { turn } = await host.engine.submit('chat', 'The codeword is amber.', { newSession: THREE });
  const recorded = () => home.query<{ id: string; state: string }>('SELECT id, state FROM sessions');
  await until('the id is recorded', () => recorded().length > 0);
  expect(await host.engine.turn(turn.id)).toMatchObject({ state: 'running', sent: null });
  await host.kill();
  expect(recorded()).toEqual([{ id: THREE, state: 'dormant' }]);
  // Without `startMs`, the agent starts at once.
  const { engine } = await home.open(
    {},
    { settings: { agents: { a: { adapter: 'scripted', options: ASSIGNED_IDS } } } },
  );
  expect(await ended(engine, turn)).toMatchObject({ state: 'completed', sessionId: THREE, attempt: 2 });
  expect((await engine.sessions('chat')).map(({ id, turns }) => [id, turns])).toEqual([[THREE, 1]]);
});

test('a failed turn that loses its chosen session is not tried again in another session', async () => {
  await using home = new Home({ a: ASSIGNED_IDS });
  // As Claude does: it rewinds a session to before the failed prompt, and there is nothing before the first prompt.
  const rewinds = (agent: Agent): Agent => ({
    ...agent,
    traits: async (sandbox) => ({ ...(await agent.traits(sandbox)), rewind: true }),
  });
  const engine = await home.engine({ agent: rewinds });
  await engine.ensure({ key: 'chat' });
  const { turn } = await run(engine, 'chat', '/fail agent_failed 1', { newSession: ONE });
  expect(turn).toMatchObject({ state: 'failed', attempt: 1, sessionId: ONE, failure: { code: 'agent_failed' } });
  expect((await engine.sessions('chat')).map(({ id }) => id)).toEqual([ONE]);
});
