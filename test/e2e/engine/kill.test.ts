import { expect, test } from 'vitest';
import { isAlive } from '../../contracts/liveness.ts';
import { allEvents, codewordsIn, event, run, until, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { sentTo } from '../support/stored.ts';

test('kill() ends the process of a session and records who did that; the next prompt restores the session', async () => {
  await using home = new Home();
  const { engine } = await home.open();
  const { turn } = await run(engine, 'notes', 'The codeword is osprey.');
  const { pid } = sentTo(home, turn.id);
  expect(await engine.kill('notes')).toMatchObject([{ state: 'dormant', watermark: 1 }]);
  expect(isAlive(pid)).toBe(false);
  expect((await allEvents(engine, 'notes')).at(-1)).toMatchObject({
    kind: 'session.changed',
    payload: { state: 'dormant', reason: 'local ended its process' },
  });
  expect(await engine.kill('notes')).toEqual([]);
  const next = await run(engine, 'notes', WHICH_CODEWORDS);
  expect(next.receipt).toMatchObject({ rung: 'resume', carried: 1 });
  expect(codewordsIn(next.reply)).toEqual(['osprey']);
});

test('a session that its agent does not store is lost with its process, and the next session is told the history', async () => {
  await using home = new Home({ scripted: { memory: 'process', resume: 'none' } });
  const { engine } = await home.open();
  await run(engine, 'notes', 'The codeword is osprey.');
  expect(await engine.kill('notes')).toMatchObject([{ state: 'lost' }]);
  // The page recognises a killed session by these words.
  expect((await allEvents(engine, 'notes')).at(-1)).toMatchObject({
    kind: 'session.changed',
    payload: { state: 'lost', reason: 'local ended its process' },
  });
  const next = await run(engine, 'notes', WHICH_CODEWORDS);
  expect(next.receipt).toMatchObject({ rung: 'transcript', carried: 1 });
  expect(codewordsIn(next.reply)).toEqual(['osprey']);
});

test('kill() interrupts a running turn; its failure says who did that, and its reply is kept', async () => {
  await using home = new Home();
  const { engine } = await home.open();
  const { turn } = await engine.submit('notes', '/say half an answer\n/hang');
  await event(engine, 'notes', 'turn.update', { turn: turn.id });
  const [killed] = await engine.kill('notes');
  expect(killed).toMatchObject({ state: 'unsettled' });
  const { turn: ended, reply } = await engine.answerOf(turn.id);
  expect(ended).toMatchObject({ state: 'interrupted', failure: { message: expect.stringMatching(/^local ended/) } });
  expect(reply).toBe('half an answer');
  expect((await run(engine, 'notes', 'Go on.')).receipt).toMatchObject({ rung: 'resume', unsettled: true });
});

test('kill() also ends a session that another process holds, and that process restores it', async () => {
  await using home = new Home();
  const { engine: holder } = await home.open();
  const { turn } = await run(holder, 'notes', 'The codeword is osprey.');
  const { pid } = sentTo(home, turn.id);
  const other = (await home.host()).engine;
  expect(await other.kill('notes')).toHaveLength(1);
  await until('its process has ended', () => !isAlive(pid));
  const next = await run(holder, 'notes', WHICH_CODEWORDS);
  expect(next.receipt).toMatchObject({ rung: 'resume', carried: 1 });
});

test('a queued prompt is sent to the restored session, not to the process that is killed', async () => {
  await using home = new Home();
  const { engine } = await home.open();
  const { turn } = await engine.submit('notes', '/say The codeword is osprey.\n/hang');
  await event(engine, 'notes', 'turn.update', { turn: turn.id });
  const { turn: waiting } = await engine.submit('notes', WHICH_CODEWORDS);
  const { pid } = sentTo(home, turn.id);
  await engine.kill('notes');
  expect(isAlive(pid)).toBe(false);
  await event(engine, 'notes', 'turn.ended', { turn: waiting.id });
  const next = await engine.answerOf(waiting.id);
  expect(next.turn.state).toBe('completed');
  expect(next.receipt).toMatchObject({ rung: 'resume', unsettled: true });
});
