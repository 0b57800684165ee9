import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scriptedAgent } from '../../../src/agents/scripted/adapter.ts';
import { ask, TestSandboxes } from '../../contracts/agent-sandbox.ts';
import { codewordsIn, refusedWith, run, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

test('an agent that continues after another one is told only the turns that it missed', async () => {
  await using home = new Home({ a: {}, b: {} });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  const one = await run(engine, 'chat', 'The codeword is amber.', { agent: 'a' });
  const two = await run(engine, 'chat', `The codeword is birch. ${WHICH_CODEWORDS}`, { agent: 'b' });
  const three = await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'a' });
  expect(codewordsIn(two.reply)).toEqual(['amber', 'birch']);
  expect(codewordsIn(three.reply)).toEqual(['amber', 'birch']);
  expect(one.turn.sent?.delivered).toBeNull();
  expect(two.turn.sent?.delivered).toMatchObject({ from: 1, to: 1, count: 1 });
  expect(three.turn.sent?.delivered).toMatchObject({ from: 2, to: 2, count: 1 });
  expect(three.receipt).toMatchObject({ rung: 'live', carried: 2, delivered: 1, dropped: 0 });
  expect(three.turn.sessionId).toBe(one.turn.sessionId);
});

test('after a restart, the old session of an agent is resumed and told the turns that it missed', async () => {
  await using home = new Home({ a: {}, b: { memory: 'process' } });
  const before = await home.open();
  await before.engine.ensure({ key: 'chat' });
  await run(before.engine, 'chat', 'The codeword is amber.', { agent: 'a' });
  for (const word of ['birch', 'cobalt']) await run(before.engine, 'chat', `The codeword is ${word}.`, { agent: 'b' });
  await before.close();
  const { engine } = await home.open();
  const { reply, turn, receipt } = await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'a' });
  expect(codewordsIn(reply)).toEqual(['amber', 'birch', 'cobalt']);
  expect(turn.sent?.delivered).toMatchObject({ from: 2, to: 3, count: 2 });
  expect(receipt).toMatchObject({ rung: 'resume', proof: 'proved', carried: 3, delivered: 2 });
});

test('a turn that names no agent goes to the agent of the turn before it', async () => {
  await using home = new Home({ a: {}, b: {} });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat', agent: 'a' });
  const agents: string[] = [];
  for (const agent of [undefined, 'b', undefined]) {
    agents.push((await run(engine, 'chat', 'Hello.', agent === undefined ? {} : { agent })).turn.agent);
  }
  expect(agents).toEqual(['a', 'b', 'b']);
  await refusedWith(
    'agent_unavailable',
    engine.submit('chat', 'Hello.', { agent: 'nobody' }),
    /There is no agent "nobody"/,
  );
});

/** Makes a session without Throughline, and returns its id. */
async function nativeSession(sandboxes: TestSandboxes, dir: string): Promise<string> {
  const session = await sandboxes.open(scriptedAgent({ name: 'a', options: { dir } }), await sandboxes.sandbox());
  await ask(session, 'The codeword is native.');
  await session.close();
  return session.id ?? expect.unreachable();
}

test('an adopted session becomes part of the lineage, and is told the history that it lacks', async () => {
  const sandboxes = new TestSandboxes();
  try {
    const dir = join(sandboxes.root, 'native');
    await using home = new Home({ a: { dir } });
    const { engine } = await home.open();
    const id = await nativeSession(sandboxes, dir);
    for (const key of ['empty', 'full']) await engine.ensure({ key });
    const other = await nativeSession(sandboxes, dir);
    expect(codewordsIn((await run(engine, 'empty', WHICH_CODEWORDS, { session: id })).reply)).toEqual(['native']);
    await run(engine, 'full', 'The codeword is amber.');
    const { reply, receipt } = await run(engine, 'full', WHICH_CODEWORDS, { session: other });
    expect(codewordsIn(reply)).toEqual(['native', 'amber']);
    expect(receipt).toMatchObject({ rung: 'resume', sessionId: other, proof: 'proved', carried: 2, delivered: 1 });
    const { sessions } = await engine.show('full');
    expect(sessions).toMatchObject([
      { origin: 'new' },
      { id: other, origin: 'adopted', watermark: 3, parent: sessions[0]?.id },
    ]);
    const next = await run(engine, 'full', WHICH_CODEWORDS);
    expect(next.turn.sessionId).toBe(other);
    await refusedWith('refused', engine.submit('empty', WHICH_CODEWORDS, { session: other }), /in use elsewhere/);
  } finally {
    await sandboxes.dispose();
  }
});

test('a session cannot be adopted by an agent that cannot reopen one', async () => {
  await using home = new Home({ a: { memory: 'process' } });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  const { turn } = await run(engine, 'chat', WHICH_CODEWORDS, { session: 'some-session' });
  expect(turn).toMatchObject({ state: 'failed', sent: null, failure: { code: 'refused' } });
  expect(turn.failure?.message).toContain('this agent cannot reopen a session');
});

test('a fork and its parent share no later turns, no sandbox and no session', async () => {
  await using home = new Home();
  const tl = await home.open();
  const parent = tl.conversation('parent');
  for (const word of ['amber', 'birch', 'cobalt']) await parent.ask(`The codeword is ${word}.`);
  const fork = await parent.fork({ turn: 2, key: 'fork' });
  const forked = await fork.ask(`The codeword is dune. ${WHICH_CODEWORDS}`);
  expect(codewordsIn(forked.reply)).toEqual(['amber', 'birch', 'dune']);
  expect(forked.turn.n).toBe(3);
  expect(forked.receipt).toMatchObject({ rung: 'transcript', carried: 2 });
  expect(codewordsIn((await parent.ask(WHICH_CODEWORDS)).reply)).toEqual(['amber', 'birch', 'cobalt']);
  const [shownFork, shownParent] = [await fork.show(), await parent.show()];
  expect(shownFork.conversation.parent).toMatchObject({ conversationId: shownParent.conversation.id, n: 2 });
  expect(home.query<{ n: number }>('SELECT count(DISTINCT sandbox) AS n FROM conversations')).toEqual([{ n: 2 }]);
  expect(shownFork.sessions.map(({ id }) => id)).not.toContain(shownParent.sessions[0]?.id);
  await refusedWith('invalid', tl.engine.fork('parent', { turn: 9 }), /not in the history/);
  await tl.engine.ensure({ key: 'empty' });
  await refusedWith('invalid', tl.engine.fork('empty'), /nothing to fork/);
  await refusedWith('conflict', tl.engine.fork('parent', { key: 'fork' }));
});

test('an exported conversation continues in another data home, with all its records and its old session closed', async () => {
  await using home = new Home();
  await using elsewhere = new Home();
  const here = await home.open();
  for (const word of ['amber', 'birch'])
    await here.conversation('chat').ask(`The codeword is ${word}.\n/tool write out.log`);
  const exported = JSON.parse(JSON.stringify(await here.engine.export('chat')));
  const there = await elsewhere.open();
  const { id } = await there.engine.import(exported);
  expect((await there.engine.export(id)).records).toEqual(exported.records);
  expect((await there.engine.sessions(id)).map(({ state }) => state)).toEqual(['closed']);
  const { reply, receipt } = await there.conversation('chat').ask(WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber', 'birch']);
  expect(receipt).toMatchObject({ rung: 'transcript', carried: 2, tried: [] });
  await refusedWith('conflict', there.engine.import(exported));
  expect((await there.engine.import(exported, { key: 'copy' })).key).toBe('copy');
  await refusedWith('invalid', there.engine.import({ ...exported, format: 'other' }), /cannot|not a conversation/);
});

test('a session whose context nothing proves is adopted only with the policy "auto"', async () => {
  await using home = new Home({ a: { resume: 'hollow', position: false } });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  const both = engine.submit('chat', WHICH_CODEWORDS, {
    session: 'whatever',
    restore: { rebuild: true, rung: 'transcript' },
  });
  await refusedWith('invalid', both, /either its session or its rung/);
  const refused = await run(engine, 'chat', WHICH_CODEWORDS, { session: 'whatever' });
  expect(refused.turn).toMatchObject({ state: 'failed', sent: null, failure: { code: 'refused' } });
  expect(refused.turn.failure?.message).toContain('nothing proves which context it has');
  const adopted = await run(engine, 'chat', WHICH_CODEWORDS, { session: 'whatever', restore: { policy: 'auto' } });
  expect(adopted.receipt).toMatchObject({ rung: 'resume', sessionId: 'whatever', proof: 'none' });
});
