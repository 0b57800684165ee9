import { expect, test } from 'vitest';
import { codewordsIn, refusedWith, run, until, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

// Ways in which a conversation could have gone on without its history, with nobody saying so.

test('our id serves wherever the key does: a fork without a key is gone on with by its id', async () => {
  await using home = new Home();
  const tl = await home.open();
  await tl.conversation('chat').ask('The codeword is amber.');
  const { id } = await tl.engine.fork('chat');
  const { reply } = await tl.conversation(id).ask(WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(await tl.engine.list()).toHaveLength(2);
  await refusedWith('conflict', tl.engine.fork('chat', { key: id }), /already/);
});

test('a session of long ago may be gone back to by its own conversation, and by no other', async () => {
  await using home = new Home({ a: { ids: 'rotating' } });
  const tl = await home.open();
  const { engine } = tl;
  await engine.ensure({ key: 'chat' });
  const { turn } = await run(engine, 'chat', 'The codeword is amber.');
  const first = turn.sessionId ?? expect.unreachable();
  for (let i = 0; i < 22; i += 1) await run(engine, 'chat', `Turn ${i}.`);
  // It is still the conversation's own, and healthy: it may be gone back to.
  const back = await run(engine, 'chat', WHICH_CODEWORDS, { session: first });
  expect(back.turn.state).toBe('completed');
  expect(codewordsIn(back.reply)).toEqual(['amber']);
  // Another conversation may not have it, also when it is closed there.
  await engine.ensure({ key: 'other' });
  await refusedWith('refused', engine.submit('other', WHICH_CODEWORDS, { session: first }), /in use elsewhere/);
});

test('after a turn with the policy "off", also one whose worker died at its end, the next has the history', async () => {
  await using home = new Home();
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  await run(engine, 'chat', 'The codeword is amber.');
  const off = await run(engine, 'chat', WHICH_CODEWORDS, { restore: { policy: 'off' } });
  expect(codewordsIn(off.reply)).toEqual([]);
  expect(off.receipt).toMatchObject({ rung: 'fresh', carried: 0, dropped: 1, proof: 'none' });
  // In one commit with the end: there is no moment at which it could be taken for a session that has the history.
  const events = [];
  for await (const event of engine.follow('chat')) {
    events.push(event);
    if (event.kind === 'turn.ended' && event.payload.n === 2) break;
  }
  const closed = events.findIndex((event) => event.kind === 'session.changed' && event.payload.state === 'closed');
  expect(closed).toBeGreaterThan(0);
  const next = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(next.reply)).toEqual(['amber']);
  expect(next.receipt).toMatchObject({ dropped: 0 });
});

test('a replay into a session that has to be reopened is proved like any reopened session', async () => {
  await using home = new Home({ a: { toolsInPlace: false, resume: 'hollow', position: false } });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  await run(engine, 'chat', 'The codeword is amber.');
  const { turn } = await run(engine, 'chat', WHICH_CODEWORDS, { restore: { rung: 'replay' } });
  expect(turn).toMatchObject({ state: 'failed', sent: null, failure: { code: 'restore_failed' } });
  expect(turn.failure?.message).toContain('nothing proves');
});

test('an agent that goes on under another id, and whose storage cannot be read, is told everything anew', async () => {
  await using home = new Home({ a: { ids: 'rotating', hollowRotation: true, position: false } });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  await run(engine, 'chat', 'The codeword is amber.');
  // It moves in the middle of this turn: its answer is not taken, and the prompt is sent again with everything.
  const moving = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(moving.reply)).toEqual(['amber']);
  expect(moving.turn.attempt).toBeLessThanOrEqual(2);
  await run(engine, 'chat', 'The codeword is birch.');
  const { reply, receipt, turn } = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber', 'birch']);
  expect(turn.attempt).toBe(1);
  expect(receipt).toMatchObject({ rung: 'transcript', proof: 'counted', dropped: 0 });
});

test('with the policy "auto" such an agent goes on, and the receipt says that nothing is proved', async () => {
  await using home = new Home({ a: { ids: 'rotating', position: false } });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat', restore: { policy: 'auto' } });
  await run(engine, 'chat', 'The codeword is amber.');
  const { reply, receipt } = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(receipt).toMatchObject({ proof: 'none' });
});

test('a warm-up without the history leaves the next turn with all of it, and a receipt that says so', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  await chat.ask('The codeword is amber.');
  expect(await chat.warm({ restore: { policy: 'off' } })).toMatchObject({ rung: 'fresh' });
  const { reply, receipt } = await chat.ask(WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(receipt).toMatchObject({ carried: 1, dropped: 0 });
});

test('sessions that an agent passes through during a replay are in the lineage', async () => {
  await using home = new Home({ a: { ids: 'rotating' } });
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  for (const word of ['amber', 'birch', 'cedar']) await run(engine, 'chat', `The codeword is ${word}.`);
  const before = (await engine.sessions('chat')).length;
  const { turn } = await run(engine, 'chat', WHICH_CODEWORDS, { restore: { rung: 'replay' } });
  const lineage = await engine.sessions('chat');
  expect(lineage.length - before).toBeGreaterThanOrEqual(3);
  expect(lineage.filter(({ state }) => state === 'closed').length).toBeGreaterThanOrEqual(2);
  expect(lineage[0]?.id).toBe(turn.sessionId);
});

test('closing ends a warm-up that hangs', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { engine } = tl;
  await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit('chat', '/hang');
  await until('it is sent', async () => (await engine.turn(turn.id)).sent !== null);
  await engine.cancel(turn.id);
  await until('it is cancelled', async () => (await engine.turn(turn.id)).state === 'cancelled');
  const warming = engine.warm('chat', { restore: { rung: 'replay' } });
  const ending = expect(warming).rejects.toMatchObject({ code: 'closed' });
  for await (const event of engine.follow('chat')) if (event.kind === 'restore.progress') break;
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

test('settings that have changed count for conversations that were there before', async () => {
  await using home = new Home({ a: {} });
  const agents = { a: { adapter: 'scripted', options: { memory: 'process' } } } as const;
  const one = await home.open({}, { settings: { agents } });
  for (const word of ['amber', 'birch', 'cedar']) await one.conversation('chat').ask(`The codeword is ${word}.`);
  await one.close();
  const two = await home.open({}, { settings: { agents, restore: { lastTurns: 1 } } });
  const { receipt } = await two.conversation('chat').ask(WHICH_CODEWORDS);
  expect(receipt).toMatchObject({ carried: 1, dropped: 2 });
});

test('an aborted signal cancels the turn, whether or not anybody looks at its events', async () => {
  await using home = new Home();
  const tl = await home.open();
  const stop = new AbortController();
  const { turn } = await tl.conversation('chat').send('/hang', { signal: stop.signal }).accepted;
  await until('it is sent', async () => (await tl.engine.turn(turn.id)).sent !== null);
  stop.abort();
  await until('it is cancelled', async () => (await tl.engine.turn(turn.id)).state === 'cancelled');
});

test('the agent of a handle is the one that is warmed up', async () => {
  await using home = new Home({ a: {}, b: {} });
  const tl = await home.open();
  await tl.conversation('chat', { agent: 'a' }).ask('The codeword is amber.');
  expect(await tl.conversation('chat', { agent: 'b' }).warm()).toMatchObject({ agent: 'b' });
});
