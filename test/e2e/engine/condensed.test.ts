import { expect, test } from 'vitest';
import type { RestoreOverride } from '../../../src/core/restore/restore-settings.ts';
import { codewordsIn, ended, event, run, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

// An agent may replace earlier turns by a summary of its own. Receipts tell those turns apart, and do not call them proved.

const WORDS = ['amber', 'birch', 'cedar'];
const counts = (carried: number, condensed: number, dropped = 0) => ({ carried, condensed, dropped });

/** A conversation of three turns, and a fourth in which the agent condenses before it answers. */
async function condensed(home: Home, restore: RestoreOverride = {}) {
  const tl = await home.open();
  const chat = tl.conversation('chat', { agent: 'a', restore });
  for (const word of WORDS) await chat.ask(`The codeword is ${word}.`);
  const { receipt } = await chat.ask('/condense\n/say Done.');
  return { tl, chat, receipt };
}

test('the receipt of the turn itself, of the living session and of a resumed one say which turns are condensed', async () => {
  await using home = new Home({ a: {} });
  const { tl, chat, receipt } = await condensed(home);
  expect(receipt).toMatchObject({ rung: 'live', ...counts(0, 3) });
  expect((await chat.ask('Hello.')).receipt).toMatchObject({ rung: 'live', proof: 'proved', ...counts(1, 3) });
  await tl.close();
  const again = (await home.open()).conversation('chat');
  expect((await again.ask('Hello.')).receipt).toMatchObject({ rung: 'resume', proof: 'proved', ...counts(2, 3) });
  const { sessions, receipts } = await again.show();
  expect(sessions).toMatchObject([{ watermark: 6, condensedTo: 3 }]);
  expect(receipts.map(({ condensed }) => condensed)).toEqual([0, 0, 0, 3, 3, 3]);
});

test('a turn that condenses after it has begun to answer is condensed itself', async () => {
  await using home = new Home({ a: {} });
  const { chat } = await condensed(home);
  const { receipt } = await chat.ask('/say First.\n/condense\n/say Second.');
  expect(receipt).toMatchObject(counts(0, 4));
  expect((await chat.ask('Hello.')).receipt).toMatchObject(counts(0, 5));
});

test('all turns come back word for word on request', async () => {
  await using home = new Home({ a: {} });
  const { chat } = await condensed(home);
  const { receipt, reply } = await chat.ask(WHICH_CODEWORDS, { restore: { rung: 'transcript' } });
  expect(receipt).toMatchObject({ rung: 'transcript', ...counts(4, 0) });
  expect(codewordsIn(reply)).toEqual(WORDS);
  expect((await chat.ask('Hello.')).receipt).toMatchObject({ rung: 'live', ...counts(5, 0) });
});

test('neither a fork nor another agent has to do with the summary', async () => {
  await using home = new Home({ a: {}, b: {} });
  const { tl, chat } = await condensed(home);
  const other = await chat.ask(WHICH_CODEWORDS, { agent: 'b' });
  expect(other.receipt).toMatchObject({ rung: 'transcript', ...counts(4, 0) });
  await tl.engine.fork('chat', { key: 'fork' });
  expect((await tl.conversation('fork').ask('Hello.')).receipt).toMatchObject({ rung: 'transcript', ...counts(5, 0) });
  // Back at the first agent: what it missed is told to it anew.
  expect((await chat.ask('Hello.', { agent: 'a' })).receipt).toMatchObject(counts(2, 3));
});

test('what a budget leaves out after the summary is not taken for a part of the summary', async () => {
  await using home = new Home({ a: {}, b: {} });
  const { chat } = await condensed(home, { lastTurns: 1 });
  for (const word of ['dune', 'ember', 'flint', 'gorse']) await chat.ask(`The codeword is ${word}.`, { agent: 'b' });
  const { receipt, reply } = await chat.ask(WHICH_CODEWORDS, { agent: 'a' });
  expect(codewordsIn(reply)).toEqual([...WORDS, 'gorse']);
  // Of eight turns: three are condensed, and three were left out. The turn between them counts as condensed, too.
  expect(receipt).toMatchObject({ rung: 'live', ...counts(1, 4, 3) });
  expect((await chat.ask('Hello.', { agent: 'a' })).receipt).toMatchObject({ rung: 'live', ...counts(2, 4, 3) });
});

test('a summary that was made in a turn which failed is not forgotten', async () => {
  await using home = new Home({ a: {} });
  const tl = await home.open();
  await tl.engine.ensure({ key: 'chat' });
  for (const word of WORDS) await run(tl.engine, 'chat', `The codeword is ${word}.`);
  await run(tl.engine, 'chat', '/condense\n/fail agent_failed');
  expect((await tl.conversation('chat').show()).sessions).toMatchObject([{ condensedTo: 3, state: 'unsettled' }]);
  const { receipt } = await tl.conversation('chat').ask('Hello.');
  expect(receipt).toMatchObject(counts(1, 3));
});

test('a summary that was made by a program which was then killed is not forgotten', async () => {
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
