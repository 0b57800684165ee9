import { expect, test } from 'vitest';
import type { Agent, AgentSession } from '../../../src/ports/agent.ts';
import type { Write } from '../../../src/ports/store/writes.ts';
import type { Store } from '../../../src/ports/store.ts';
import { codewordsIn, event, refusedWith, run, until, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

// Cases in which a conversation could continue without its history although no receipt says so.

test('a conversation is found by its id as well as by its key: a fork without a key continues under its id', async () => {
  await using home = new Home();
  const tl = await home.open();
  await tl.conversation('chat').ask('The codeword is amber.');
  const { id } = await tl.engine.fork('chat');
  const { reply } = await tl.conversation(id).ask(WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(await tl.engine.list()).toHaveLength(2);
  await refusedWith('conflict', tl.engine.fork('chat', { key: id }), /already/);
});

test('an old session can be used again by its own conversation, and by no other', async () => {
  await using home = new Home({ a: { ids: 'rotating' } });
  const tl = await home.open();
  const { engine } = tl;
  await engine.ensure({ key: 'chat' });
  const { turn } = await run(engine, 'chat', 'The codeword is amber.');
  const first = turn.sessionId ?? expect.unreachable();
  // Each turn has a new session: more than the 20 that a worker reads.
  for (let i = 0; i < 22; i += 1) await run(engine, 'chat', `Turn ${i}.`);
  // It still belongs to the conversation, and the agent still has it.
  const back = await run(engine, 'chat', WHICH_CODEWORDS, { session: first });
  expect(back.turn.state).toBe('completed');
  expect(codewordsIn(back.reply)).toEqual(['amber']);
  // Another conversation cannot use it.
  await engine.ensure({ key: 'other' });
  await refusedWith('refused', engine.submit('other', WHICH_CODEWORDS, { session: first }), /in use elsewhere/);
});

test('a turn with the policy "off" closes its session in the commit that ends it, and the next turn has the history', async () => {
  await using home = new Home();
  const commits: (readonly Write[])[] = [];
  const store = (real: Store): Store => ({
    ...real,
    commit: (fence, counter, writes) => {
      commits.push(writes);
      return real.commit(fence, counter, writes);
    },
  });
  const engine = await home.engine({ store });
  await engine.ensure({ key: 'chat' });
  await run(engine, 'chat', 'The codeword is amber.');
  const off = await run(engine, 'chat', WHICH_CODEWORDS, { restore: { policy: 'off' } });
  expect(codewordsIn(off.reply)).toEqual([]);
  expect(off.receipt).toMatchObject({ rung: 'fresh', carried: 0, dropped: 1, proof: 'none' });
  // A worker that died between two commits would leave a session that looks as if it had the history.
  const ending = commits.find((writes) => writes.some((one) => one.write === 'end' && one.turn === off.turn.id));
  const closing = { write: 'change-session', change: expect.objectContaining({ state: 'closed' }) };
  expect(ending).toContainEqual(expect.objectContaining(closing));
  const next = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(next.reply)).toEqual(['amber']);
  expect(next.receipt).toMatchObject({ dropped: 0 });
});

test('a replay into a session that has to be reopened needs a proof like any reopened session', async () => {
  await using home = new Home({ a: { toolsInPlace: false, resume: 'hollow', position: false } });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  await run(engine, 'chat', 'The codeword is amber.');
  const { turn } = await run(engine, 'chat', WHICH_CODEWORDS, { restore: { rebuild: true, rung: 'replay' } });
  expect(turn).toMatchObject({ state: 'failed', sent: null, failure: { code: 'restore_failed' } });
  expect(turn.failure?.message).toContain('nothing proves');
  // With the policy "auto" it is used without a proof, and not by a later turn that requires one.
  const auto = await run(engine, 'chat', 'Hello.', { restore: { rebuild: true, rung: 'replay', policy: 'auto' } });
  expect(auto.receipt).toMatchObject({ rung: 'replay', proof: 'none' });
  const { reply, receipt } = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(receipt?.rung).toBe('transcript');
});

test('an agent that changes the id of its session, and whose storage is not read, is told the whole history again', async () => {
  await using home = new Home({ a: { ids: 'rotating', hollowRotation: true, position: false } });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  await run(engine, 'chat', 'The codeword is amber.');
  // The id changes in the middle of this turn: the answer is not used, and the prompt is sent again with the history.
  const changing = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(changing.reply)).toEqual(['amber']);
  expect(changing.turn.attempt).toBe(2);
  expect(changing.receipt?.tried).toMatchObject([{ rung: 'live' }]);
  await run(engine, 'chat', 'The codeword is birch.');
  const { reply, receipt, turn } = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber', 'birch']);
  expect(turn.attempt).toBe(1);
  expect(receipt).toMatchObject({ rung: 'transcript', proof: 'counted', dropped: 0 });
});

test('with the policy "auto" an agent that changes the id of its session continues, and the receipt says that nothing is proved', async () => {
  await using home = new Home({ a: { ids: 'rotating', position: false } });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat', restore: { policy: 'auto' } });
  await run(engine, 'chat', 'The codeword is amber.');
  const { reply, receipt } = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(receipt).toMatchObject({ proof: 'none' });
});

test('a replay to an agent that changes the id of its session, and whose storage is not read, proves nothing', async () => {
  await using home = new Home({ a: { ids: 'rotating', hollowRotation: true, position: false } });
  const { engine } = await home.open();
  const replay = { restore: { rebuild: true, rung: 'replay' } } as const;
  const auto = { restore: { rebuild: true, rung: 'replay', policy: 'auto' } } as const;
  await engine.ensure({ key: 'chat' });
  // With one turn in the history the id changes with the new prompt, later also during the replay.
  for (const code of ['context_refuted', 'restore_failed']) {
    await run(engine, 'chat', 'Hello.');
    const { turn } = await run(engine, 'chat', '/say Well.', replay);
    expect(turn).toMatchObject({ state: 'failed', failure: { code } });
    expect((await run(engine, 'chat', '/say Well.', auto)).receipt).toMatchObject({ rung: 'replay', proof: 'none' });
  }
});

test('after a warm-up without the history the next turn has all of it, and its receipt says so', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  await chat.ask('The codeword is amber.');
  expect(await chat.warm({ restore: { policy: 'off' } })).toMatchObject({ rung: 'fresh' });
  const { reply, receipt } = await chat.ask(WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(receipt).toMatchObject({ carried: 1, dropped: 0 });
});

test('all sessions that an agent uses during a replay are in the lineage', async () => {
  await using home = new Home({ a: { ids: 'rotating' } });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  for (const word of ['amber', 'birch', 'cedar']) await run(engine, 'chat', `The codeword is ${word}.`);
  const before = (await engine.sessions('chat')).length;
  const { turn } = await run(engine, 'chat', WHICH_CODEWORDS, { restore: { rebuild: true, rung: 'replay' } });
  const lineage = await engine.sessions('chat');
  expect(lineage.length - before).toBeGreaterThanOrEqual(3);
  expect(lineage.filter(({ state }) => state === 'closed').length).toBeGreaterThanOrEqual(2);
  expect(lineage[0]?.id).toBe(turn.sessionId);
});

test('a replay is not continued when the agent changes to a session that lacks the turns before', async () => {
  await using home = new Home({ a: { ids: 'rotating', hollowRotation: true } });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  for (const word of ['amber', 'birch']) await run(engine, 'chat', `The codeword is ${word}.`);
  const auto = { restore: { rebuild: true, rung: 'replay', policy: 'auto' } } as const;
  const { turn } = await run(engine, 'chat', WHICH_CODEWORDS, auto);
  expect(turn).toMatchObject({ state: 'failed', sent: null, failure: { code: 'restore_failed' } });
  expect(turn.failure?.message).toContain('during the replay the agent changed its session');
});

test('a session whose id we chose, and which an agent leaves during a replay, is closed, and the next ones follow it', async () => {
  await using home = new Home({ a: { ids: 'rotating' } });
  /** Its first session has the id that it is given, until it changes to another one. */
  const assigned = (agent: Agent): Agent => ({
    ...agent,
    traits: async (sandbox) => ({ ...(await agent.traits(sandbox)), id: 'assigned' }),
    async open(request) {
      if (request.how.kind !== 'new') return agent.open(request);
      const opened = await agent.open({ ...request, how: { kind: 'new', id: null } });
      if (!opened.ok) return opened;
      const { session } = opened;
      const [issued, given] = [session.id, request.how.id];
      const get = (target: AgentSession, name: keyof AgentSession) => {
        if (name === 'id') return target.id === issued ? given : target.id;
        const value = target[name];
        return typeof value === 'function' ? value.bind(target) : value;
      };
      return { ...opened, session: new Proxy(session, { get: get as () => unknown }) };
    },
  });
  const engine = await home.engine({ agent: assigned });
  await engine.ensure({ key: 'chat' });
  for (const word of ['amber', 'birch']) await run(engine, 'chat', `The codeword is ${word}.`);
  const before = (await engine.sessions('chat')).length;
  const { turn, receipt } = await run(engine, 'chat', WHICH_CODEWORDS, { restore: { rebuild: true, rung: 'replay' } });
  expect(receipt).toMatchObject({ rung: 'replay', carried: 2, proof: 'proved' });
  const lineage = (await engine.sessions('chat')).slice(0, -before).toReversed();
  const [first, second, third] = lineage;
  expect(lineage).toMatchObject([
    { origin: 'new', state: 'closed' },
    { origin: 'rotated', parent: first?.id },
    { origin: 'rotated', parent: second?.id, state: 'live' },
  ]);
  expect(turn.sessionId).toBe(third?.id);
});

test('close() ends a warm-up that hangs', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { engine } = tl;
  await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit('chat', '/hang');
  await until('the prompt is sent', async () => (await engine.turn(turn.id)).sent !== null);
  await engine.cancel(turn.id);
  await until('the turn is cancelled', async () => (await engine.turn(turn.id)).state === 'cancelled');
  // The replay sends the prompt that hangs again.
  const warming = engine.warm('chat', { restore: { rebuild: true, rung: 'replay' } });
  const ending = expect(warming).rejects.toMatchObject({ code: 'closed' });
  await event(engine, 'chat', 'restore.progress');
  await tl.close({ graceMs: 10 });
  await ending;
});

test('settings that contradict each other are refused', async () => {
  await using home = new Home();
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  const off = { restore: { policy: 'off' } } as const;
  await refusedWith('invalid', engine.submit('chat', WHICH_CODEWORDS, { session: 'x', ...off }), /continues in it/);
  const both = { restore: { policy: 'off', rung: 'replay' } } as const;
  await refusedWith('invalid', engine.submit('chat', WHICH_CODEWORDS, both), /cannot have a rung/);
});

test('changed settings apply to existing conversations as well', async () => {
  await using home = new Home({ a: {} });
  const agents = { a: { adapter: 'scripted', options: { memory: 'process' } } } as const;
  const one = await home.open({}, { settings: { agents } });
  for (const word of ['amber', 'birch', 'cedar']) await one.conversation('chat').ask(`The codeword is ${word}.`);
  await one.close();
  const two = await home.open({}, { settings: { agents, restore: { lastTurns: 1 } } });
  const { receipt } = await two.conversation('chat').ask(WHICH_CODEWORDS);
  expect(receipt).toMatchObject({ carried: 1, dropped: 2 });
});

test('an aborted signal cancels the turn, although nobody reads its events', async () => {
  await using home = new Home();
  const tl = await home.open();
  const stop = new AbortController();
  const { turn } = await tl.conversation('chat').send('/hang', { signal: stop.signal }).accepted;
  await until('the prompt is sent', async () => (await tl.engine.turn(turn.id)).sent !== null);
  stop.abort();
  await until('the turn is cancelled', async () => (await tl.engine.turn(turn.id)).state === 'cancelled');
});

test('the agent of a handle is the one that is warmed up', async () => {
  await using home = new Home({ a: {}, b: {} });
  const tl = await home.open();
  await tl.conversation('chat', { agent: 'a' }).ask('The codeword is amber.');
  expect(await tl.conversation('chat', { agent: 'b' }).warm()).toMatchObject({ agent: 'b' });
});
