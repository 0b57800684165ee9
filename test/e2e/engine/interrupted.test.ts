import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemProcesses } from '../../../src/host/processes.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import {
  allEvents,
  codewordsIn,
  effects,
  ended,
  event,
  expectSound,
  refusedWith,
  run,
  until,
  WHICH_CODEWORDS,
} from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { sentTo } from '../support/stored.ts';

async function openChat(home: Home, tuning = {}) {
  const tl = await home.open({ retryMs: 10, ...tuning });
  const { id: sandbox } = await tl.engine.ensure({ key: 'chat' });
  return { tl, engine: tl.engine, log: join(home.sandboxes, sandbox, 'work', 'effects.log') };
}

const partsOf = async (engine: Engine) => (await engine.export('chat')).records.at(-1)?.parts;

test.each([
  ['kills itself', '/die'],
  ['exits', '/exit 3'],
])('an agent that %s in the middle of a turn leaves an interrupted turn with what it had said', async (_, end) => {
  await using home = new Home();
  const { engine, log } = await openChat(home);
  await run(engine, 'chat', 'The codeword is amber.');
  const { turn, reply } = await run(
    engine,
    'chat',
    `The codeword is birch.\n/say the beginning\n/tool write effects.log\n${end}`,
  );
  const failure = { code: 'agent_died', message: expect.stringMatching(/ended (by SIGKILL|with code 3)\.$/) };
  expect(turn).toMatchObject({ state: 'interrupted', attempt: 1, failure });
  expect(reply).toBe('the beginning');
  expect(await partsOf(engine)).toMatchObject([{ type: 'text' }, { type: 'tool', name: 'write', status: 'completed' }]);
  expect(effects(log)).toBe(1);
  await expectSound(engine, 'chat');
});

test('its hint names it for a retry, everywhere; that of its copy in a fork names the copy', async () => {
  await using home = new Home();
  const { engine } = await openChat(home);
  const { turn } = await run(engine, 'chat', '/say the beginning\n/die');
  await engine.fork('chat', { key: 'copy' });
  const [copied] = await engine.turns('copy');
  const { payload } = await event(engine, 'chat', 'turn.ended', { turn: turn.id });
  const told = { original: turn.failure, event: payload.failure, copied: copied?.failure };
  const naming = (id: string | undefined) => ({ hint: expect.stringContaining(`"throughline retry ${id}" sends`) });
  expect(copied?.id).not.toBe(turn.id);
  expect(told).toMatchObject({ original: naming(turn.id), event: naming(turn.id), copied: naming(copied?.id) });
});

test('the next turn is told of the interrupted one, and that the session may already have a part of it', async () => {
  await using home = new Home();
  const { engine } = await openChat(home);
  await run(engine, 'chat', 'The codeword is amber.');
  const interrupted = await run(engine, 'chat', 'The codeword is birch.\n/die after-tool\n/tool write effects.log');
  expect(interrupted.turn.state).toBe('interrupted');
  const { reply, receipt, turn } = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber', 'birch']);
  expect(receipt).toMatchObject({ rung: 'resume', unsettled: true, delivered: 1, carried: 2 });
  expect(turn.sent?.delivered).toMatchObject({ from: 2, to: 2, count: 1 });
  const block = (await run(engine, 'chat', 'Repeat the last prompt')).reply;
  expect(block).toContain('You may already have a part of these turns');
  expect(block).toContain('[turn 2] tool write effects.log: unknown');
  expect(block).toContain('[turn 2] did not complete: interrupted.');
  const sessions = await engine.sessions('chat');
  expect(sessions).toMatchObject([{ state: 'live', watermark: 4 }]);
});

test('a retry is a new turn that names the old one, and happens only on request', async () => {
  await using home = new Home();
  const { engine, log } = await openChat(home);
  const { turn } = await run(engine, 'chat', '/tool write effects.log\n/exit 1');
  expect(effects(log)).toBe(1);
  const again = await engine.retry(turn.id, { requestId: 'again' });
  expect(again.turn).toMatchObject({ n: 2, retryOf: turn.id, prompt: turn.prompt });
  expect((await ended(engine, again.turn)).state).toBe('interrupted');
  expect(effects(log)).toBe(2);
  expect(await engine.retry(turn.id, { requestId: 'again' })).toMatchObject({ duplicate: true });
  expect((await engine.turns('chat')).length).toBe(2);
});

test('a turn that fails before a tool has begun is tried again in another attempt', async () => {
  await using home = new Home();
  const { engine } = await openChat(home);
  await run(engine, 'chat', 'The codeword is amber.');
  const { turn, reply } = await run(engine, 'chat', `/fail agent_failed 1\n${WHICH_CODEWORDS}`);
  expect(turn).toMatchObject({ state: 'completed', attempt: 2, failure: null });
  expect(codewordsIn(reply)).toEqual(['amber']);
  const retrying = await event(engine, 'chat', 'turn.retrying');
  expect(retrying.payload).toMatchObject({ n: 2, attempt: 1, failure: { code: 'agent_failed' } });
  await expectSound(engine, 'chat');
});

test('a turn that fails in every attempt fails after the number of attempts in the settings', async () => {
  await using home = new Home();
  const { engine } = await openChat(home, { attempts: 3 });
  const { turn } = await run(engine, 'chat', '/fail agent_failed 99');
  expect(turn).toMatchObject({ state: 'failed', attempt: 3, failure: { code: 'agent_failed' } });
});

test('a turn that fails after a tool has begun is not tried again', async () => {
  await using home = new Home();
  const { engine, log } = await openChat(home);
  const { turn } = await run(engine, 'chat', '/tool write effects.log\n/fail agent_failed 1');
  expect(turn).toMatchObject({ state: 'failed', attempt: 1, failure: { code: 'agent_failed' } });
  expect(effects(log)).toBe(1);
  const retries = (await allEvents(engine, 'chat')).filter(({ kind }) => kind === 'turn.retrying');
  expect(retries).toEqual([]);
});

test('garbage, very long lines and messages on stderr are skipped, and the answer is complete', async () => {
  await using home = new Home();
  const { engine } = await openChat(home);
  const { turn, reply } = await run(engine, 'chat', `The codeword is amber.\n/stderr\n/garbage\n${WHICH_CODEWORDS}`);
  expect(turn.state).toBe('completed');
  expect(codewordsIn(reply)).toEqual(['amber']);
});

test('close() lets a running turn end within the grace period', async () => {
  await using home = new Home();
  const { tl, engine } = await openChat(home);
  const { turn } = await engine.submit('chat', '/stream 20 5');
  await event(engine, 'chat', 'turn.update');
  await tl.close({ graceMs: 20_000 });
  const again = await home.open();
  expect((await again.engine.turn(turn.id)).state).toBe('completed');
});

test('close() interrupts a turn that takes longer than the grace period, and the next process runs the queued turns', async () => {
  await using home = new Home();
  const { tl, engine } = await openChat(home);
  await run(engine, 'chat', 'The codeword is amber.');
  const { turn } = await engine.submit('chat', '/say the beginning\n/hang');
  const queued = await engine.submit('chat', WHICH_CODEWORDS);
  await event(engine, 'chat', 'turn.update', { turn: turn.id });
  const pid = sentTo(home, turn.id).pid;
  await tl.close({ graceMs: 20 });
  expect(() => process.kill(pid, 0)).toThrow();
  const next = await home.open({ claims: 'all' });
  expect(await next.engine.turn(turn.id)).toMatchObject({ state: 'interrupted', failure: { code: 'interrupted' } });
  expect((await next.engine.answerOf(turn.id)).reply).toBe('the beginning');
  expect(await ended(next.engine, queued.turn)).toMatchObject({ state: 'completed', attempt: 1 });
  expect(codewordsIn((await next.engine.answerOf(queued.turn.id)).reply)).toEqual(['amber']);
  await expectSound(next.engine, 'chat');
});

test('close() before the prompt was sent leaves the turn queued for the next process', async () => {
  await using home = new Home({ claude: { startMs: 600_000 } });
  const { tl, engine } = await openChat(home);
  const { turn } = await engine.submit('chat', 'The codeword is amber.');
  await event(engine, 'chat', 'turn.started');
  await tl.close({ graceMs: 0 });
  const next = await home.open({ claims: 'all' }, { settings: { agents: { claude: { adapter: 'scripted' } } } });
  expect((await ended(next.engine, turn)).state).toBe('completed');
});

test('a turn whose process was killed is ended by the next process, with what the agent’s storage has of it', async () => {
  await using home = new Home({ claude: { survives: true } }); // the agent continues its turn without Throughline
  const [{ engine, log }, runner] = await Promise.all([openChat(home), home.host()]);
  await runner.calls.ask('chat', 'The codeword is amber.');
  const { turn } = await runner.engine.submit('chat', '/say the beginning\n/slow-tool write effects.log 60000');
  await event(engine, 'chat', 'turn.sent', { turn: turn.id });
  const agent = sentTo(home, turn.id);
  await event(engine, 'chat', 'turn.update', { turn: turn.id });
  await until('the tool has begun', () => effects(log) === 1);
  await runner.kill();
  const { reply, receipt } = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(await engine.turn(turn.id)).toMatchObject({ state: 'interrupted', failure: { code: 'interrupted' } });
  expect(systemProcesses.status(agent)).toBe('dead');
  expect((await engine.answerOf(turn.id)).reply).toBe('the beginning');
  expect(effects(log)).toBe(1);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(receipt).toMatchObject({ unsettled: true, delivered: 1 });
  await expectSound(engine, 'chat');
});

test('an agent that dies before it has named its session leaves a turn without one', async () => {
  await using home = new Home({ claude: { nameLate: true } });
  const { engine } = await openChat(home);
  expect((await run(engine, 'chat', 'The codeword is amber.\n/die')).turn).toMatchObject({
    state: 'interrupted',
    sessionId: null,
  });
  expect(home.query('SELECT id FROM sessions')).toEqual([]);
  const { reply, turn } = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(turn.sessionId).not.toBeNull();
});

test('ask() is rejected when close() interrupts its turn, and later calls are refused', async () => {
  await using home = new Home();
  const { tl, engine } = await openChat(home);
  const waiting = refusedWith('interrupted', tl.conversation('chat').ask('/say the beginning\n/hang'));
  await event(engine, 'chat', 'turn.update');
  await tl.close({ graceMs: 0 });
  await waiting;
  await refusedWith('closed', tl.conversation('chat').ask('Hello.'));
  await tl.close();
});

test('close() with an infinite grace period does not interrupt a running turn', async () => {
  await using home = new Home();
  const { tl, engine } = await openChat(home);
  const { turn } = await engine.submit('chat', '/stream 10 30');
  await event(engine, 'chat', 'turn.update', { turn: turn.id });
  await tl.close({ graceMs: Number.POSITIVE_INFINITY });
  const again = await home.open();
  expect(await again.engine.turn(turn.id)).toMatchObject({ state: 'completed' });
});
