import { expect, test } from 'vitest';
import type { RestoreOverride } from '../../../src/core/restore/restore-settings.ts';
import { codewordsIn, ended, event, run, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

// An agent may replace earlier turns by a summary of its own. Receipts count those turns separately, and do not call them proved.

const WORDS = ['amber', 'birch', 'cedar'];
const counts = (carried: number, condensed: number, dropped = 0) => ({ carried, condensed, dropped });

/** A conversation of three turns, and a fourth in which the agent condenses before it answers. */
async function condensedChat(home: Home, restore: RestoreOverride = {}) {
  const tl = await home.open();
  const chat = tl.conversation('chat', { agent: 'a', restore });
  for (const word of WORDS) await chat.ask(`The codeword is ${word}.`);
  const { receipt } = await chat.ask('/condense\n/say Done.');
  return { tl, chat, receipt };
}

test('the receipts of the turn that condenses, of the live session and of a resumed one count the condensed turns', async () => {
  await using home = new Home({ a: {} });
  const { tl, chat, receipt } = await condensedChat(home);
  expect(receipt).toMatchObject({ rung: 'live', ...counts(0, 3) });
  expect((await chat.ask('Hello.')).receipt).toMatchObject({ rung: 'live', proof: 'proved', ...counts(1, 3) });
  await tl.close();
  const again = (await home.open()).conversation('chat');
  expect((await again.ask('Hello.')).receipt).toMatchObject({ rung: 'resume', proof: 'proved', ...counts(2, 3) });
  const { sessions, receipts } = await again.show();
  expect(sessions).toMatchObject([{ watermark: 6, condensedTo: 3 }]);
  expect(receipts.map(({ condensed }) => condensed)).toEqual([0, 0, 0, 3, 3, 3]);
});

test('a turn in which the agent condenses after it has begun to answer is condensed itself', async () => {
  await using home = new Home({ a: {} });
  const { chat } = await condensedChat(home);
  const { receipt } = await chat.ask('/say First.\n/condense\n/say Second.');
  expect(receipt).toMatchObject(counts(0, 4));
  expect((await chat.ask('Hello.')).receipt).toMatchObject(counts(0, 5));
});

test('the rung "transcript" gives the agent all turns word for word again', async () => {
  await using home = new Home({ a: {} });
  const { chat } = await condensedChat(home);
  const { receipt, reply } = await chat.ask(WHICH_CODEWORDS, { restore: { rebuild: true, rung: 'transcript' } });
  expect(receipt).toMatchObject({ rung: 'transcript', ...counts(4, 0) });
  expect(codewordsIn(reply)).toEqual(WORDS);
  expect((await chat.ask('Hello.')).receipt).toMatchObject({ rung: 'live', ...counts(5, 0) });
});

test('a summary that the agent makes in a replay counts as one that it makes in a turn', async () => {
  await using home = new Home({ a: {} });
  const { chat } = await condensedChat(home);
  const { receipt } = await chat.ask('Hello.', { restore: { rebuild: true, rung: 'replay' } });
  expect(receipt).toMatchObject({ rung: 'replay', delivered: 4, ...counts(1, 3) });
  expect((await chat.ask('Hello.')).receipt).toMatchObject({ rung: 'live', ...counts(2, 3) });
  expect((await chat.show()).sessions.at(-1)).toMatchObject({ watermark: 6, condensedTo: 3 });
  await chat.ask('/say First.\n/condense\n/say Second.');
  const again = await chat.ask('Hello.', { restore: { rebuild: true, rung: 'replay', lastTurns: 5 } });
  expect(again.receipt).toMatchObject({ rung: 'replay', delivered: 5, ...counts(0, 5, 2) });
});

test('a fork and another agent get all turns word for word, and no summary', async () => {
  await using home = new Home({ a: {}, b: {} });
  const { tl, chat } = await condensedChat(home);
  const other = await chat.ask(WHICH_CODEWORDS, { agent: 'b' });
  expect(other.receipt).toMatchObject({ rung: 'transcript', ...counts(4, 0) });
  await tl.engine.fork('chat', { key: 'fork' });
  expect((await tl.conversation('fork').ask('Hello.')).receipt).toMatchObject({ rung: 'transcript', ...counts(5, 0) });
  // The first agent again: its session is told the two turns that it missed.
  expect((await chat.ask('Hello.', { agent: 'a' })).receipt).toMatchObject(counts(2, 3));
});

test('turns after the summary that a budget drops count as dropped, not as condensed', async () => {
  await using home = new Home({ a: {}, b: {} });
  const { chat } = await condensedChat(home, { lastTurns: 1 });
  for (const word of ['dune', 'ember', 'flint', 'gorse']) await chat.ask(`The codeword is ${word}.`, { agent: 'b' });
  const { receipt, reply } = await chat.ask(WHICH_CODEWORDS, { agent: 'a' });
  expect(codewordsIn(reply)).toEqual([...WORDS, 'gorse']);
  // Of eight turns: three are condensed, and three were left out. The turn between them counts as condensed, too.
  expect(receipt).toMatchObject({ rung: 'live', ...counts(1, 4, 3) });
  expect((await chat.ask('Hello.', { agent: 'a' })).receipt).toMatchObject({ rung: 'live', ...counts(2, 4, 3) });
});

test('a summary that the agent made in a failed turn still counts', async () => {
  await using home = new Home({ a: {} });
  const tl = await home.open();
  await tl.engine.ensure({ key: 'chat' });
  for (const word of WORDS) await run(tl.engine, 'chat', `The codeword is ${word}.`);
  await run(tl.engine, 'chat', '/condense\n/fail agent_failed');
  expect((await tl.conversation('chat').show()).sessions).toMatchObject([{ condensedTo: 3, state: 'unsettled' }]);
  const { receipt } = await tl.conversation('chat').ask('Hello.');
  expect(receipt).toMatchObject(counts(1, 3));
});

test('a summary that the agent made in a turn whose process was killed still counts', async () => {
  await using home = new Home({ a: {} });
  const [tl, runner] = await Promise.all([home.open(), home.host()]);
  await runner.engine.ensure({ key: 'chat' });
  for (const word of WORDS) {
    const { turn } = await runner.engine.submit('chat', `The codeword is ${word}.`);
    await ended(tl.engine, turn);
  }
  const { turn } = await runner.engine.submit('chat', '/condense\n/hang');
  await event(tl.engine, 'chat', 'turn.update', { turn: turn.id });
  await runner.kill();
  await tl.conversation('chat').ask('Hello.');
  expect((await ended(tl.engine, turn)).state).toBe('interrupted');
  expect((await tl.conversation('chat').show()).sessions).toMatchObject([{ condensedTo: 3 }]);
});
