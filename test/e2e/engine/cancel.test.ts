import { expect, test } from 'vitest';
import {
  allEvents,
  codewordsIn,
  ended,
  event,
  expectSound,
  refusedWith,
  run,
  untilReleased,
  WHICH_CODEWORDS,
} from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { sentTo } from '../support/stored.ts';

/** The same data home in this process and in another one. */
async function openInTwoProcesses(home: Home) {
  const [tl, other] = await Promise.all([home.open(), home.host()]);
  await tl.engine.ensure({ key: 'chat' });
  return { engine: tl.engine, other: other.engine };
}

test('a queued turn is cancelled at once, by any process, and is not part of the history', async () => {
  await using home = new Home();
  const { engine, other } = await openInTwoProcesses(home);
  const first = await engine.submit('chat', '/hang');
  const second = await engine.submit('chat', 'The codeword is amber.');
  await event(engine, 'chat', 'turn.sent');
  expect(await other.cancel(second.turn.id)).toMatchObject({ state: 'cancelled', sent: null, startedAt: null });
  await other.cancel(first.turn.id);
  await ended(engine, first.turn);
  const { reply, turn } = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual([]);
  expect(turn.n).toBe(3);
  await expectSound(engine, 'chat');
});

test.each([
  ['that is streaming', '/stream 100000 5'],
  ['that hangs', '/say beginning\n/hang'],
])('an agent %s is stopped from another process, and what it said is kept', async (_, prompt) => {
  await using home = new Home();
  const { engine, other } = await openInTwoProcesses(home);
  await run(engine, 'chat', 'The codeword is amber.');
  const { turn } = await engine.submit('chat', prompt);
  await event(engine, 'chat', 'turn.update', { turn: turn.id });
  await other.cancel(turn.id);
  expect(await ended(engine, turn)).toMatchObject({
    state: 'cancelled',
    failure: { code: 'cancelled' },
    cancelRequested: true,
  });
  const { reply } = await engine.answerOf(turn.id);
  expect(reply).toMatch(/^(chunk 1|beginning)/);
  expect(codewordsIn((await run(engine, 'chat', WHICH_CODEWORDS)).reply)).toEqual(['amber']);
  await expectSound(engine, 'chat');
});

test('an agent that ignores the cancel is killed, and the conversation continues without it', async () => {
  await using home = new Home({ claude: { cancelGraceMs: 100 } });
  const { engine, other } = await openInTwoProcesses(home);
  await run(engine, 'chat', 'The codeword is amber.');
  const { turn } = await engine.submit('chat', 'The codeword is birch.\n/say beginning\n/hang!');
  await event(engine, 'chat', 'turn.update', { turn: turn.id });
  const pid = sentTo(home, turn.id).pid;
  await other.cancel(turn.id);
  expect(await ended(engine, turn)).toMatchObject({ state: 'cancelled' });
  expect(() => process.kill(pid, 0)).toThrow();
  const { reply, receipt } = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber', 'birch']);
  expect(receipt).toMatchObject({ rung: 'resume', unsettled: true, delivered: 1 });
});

test('a turn is cancelled while its session is being restored, and nothing is sent', async () => {
  await using home = new Home({ claude: { startMs: 60_000 } });
  const { engine, other } = await openInTwoProcesses(home);
  const { turn } = await engine.submit('chat', 'Hello.');
  await event(engine, 'chat', 'turn.started', { turn: turn.id });
  await other.cancel(turn.id);
  expect(await ended(engine, turn)).toMatchObject({ state: 'cancelled', sent: null });
  expect((await engine.conversation('chat')).head).toBe(0);
});

test('a turn whose process was killed ends when another process cancels it', async () => {
  await using home = new Home();
  const [tl, runner] = await Promise.all([home.open(), home.host()]);
  await runner.engine.ensure({ key: 'chat' });
  const { turn } = await runner.engine.submit('chat', '/say beginning\n/hang');
  await event(tl.engine, 'chat', 'turn.update');
  await runner.kill();
  await tl.engine.cancel(turn.id);
  expect(await ended(tl.engine, turn)).toMatchObject({ state: 'interrupted' });
  expect((await tl.engine.answerOf(turn.id)).reply).toBe('beginning');
});

test('cancelling a turn that has ended changes nothing', async () => {
  await using home = new Home();
  const { engine } = await home.open();
  await engine.ensure({ key: 'chat' });
  const { turn } = await run(engine, 'chat', 'Hello.');
  expect(await engine.cancel(turn.id)).toMatchObject({ state: 'completed', cancelRequested: false });
});

test('aborting the signal of a prompt cancels its turn, and its events continue to the end', async () => {
  await using home = new Home();
  const tl = await home.open();
  const stop = new AbortController();
  const kinds: string[] = [];
  const answer = tl.conversation('chat').send('/stream 100000 5', { signal: stop.signal });
  for await (const one of answer.events) {
    kinds.push(one.kind);
    if (one.kind === 'turn.update') stop.abort();
  }
  expect(kinds.at(-1)).toBe('turn.ended');
  await expect(answer).rejects.toMatchObject({ name: 'TurnError', code: 'cancelled', turn: { state: 'cancelled' } });
  await refusedWith('cancelled', tl.conversation('chat').ask('Hello.', { signal: AbortSignal.abort() }));
  expect((await tl.engine.turns('chat')).map(({ state }) => state)).toEqual(['cancelled']);
});

test.each([
  ['is open and locked', { lockMs: 60_000 }, 8, 'Hello.', 'turn.sent'],
  ['is closed and locked', { lockMs: 60_000 }, 0, 'Hello.', 'session.locked'],
  ['has failed and will be tried again', {}, 8, '/say hm\n/fail agent_failed 1', 'turn.update'],
] as const)('a turn whose session %s is cancelled while it waits', async (_, options, maxWarm, prompt, kind) => {
  await using home = new Home({ claude: options });
  const { engine } = await home.open({ maxWarm, retryMs: 60_000 });
  await engine.ensure({ key: 'chat' });
  await run(engine, 'chat', 'The codeword is amber.');
  if (maxWarm === 0) await untilReleased(engine, 'chat'); // until then, a turn would find the session open
  const { turn } = await engine.submit('chat', prompt);
  await event(engine, 'chat', kind, { turn: turn.id });
  await engine.cancel(turn.id);
  expect(await ended(engine, turn)).toMatchObject({ state: 'cancelled', failure: { code: 'cancelled' } });
});

test('a turn that is cancelled in the pause before its next attempt does not begin that attempt', async () => {
  await using home = new Home();
  const { engine } = await home.open({ retryMs: 60_000 });
  await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit('chat', '/say hm\n/fail agent_failed 1');
  await event(engine, 'chat', 'turn.update', { turn: turn.id });
  await engine.cancel(turn.id);
  expect(await ended(engine, turn)).toMatchObject({ state: 'cancelled', attempt: 1 });
  expect((await allEvents(engine, 'chat')).map(({ kind }) => kind)).not.toContain('turn.retrying');
  expect((await engine.answerOf(turn.id)).reply).toBe('hm');
});
