import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Throughline } from '../../../../src/index.ts';
import { event, WHICH_CODEWORDS } from '../../../e2e/support/conversations.ts';
import { type InstalledClaude, talkToClaude } from '../../support/claude.ts';
import { ALLOW_BASH, type ClaudeAdapter, ClaudeHome, codeword } from '../../support/claude-home.ts';

// The smallest window that Claude accepts. Three prompts with LONG do not fit into it.
const SETTINGS = { ...ALLOW_BASH, autoCompactWindow: 100_000 };
const LONG = ' lorem ipsum'.repeat(8_000);
const WORDS = ['amber', 'birch', 'cedar', 'dune', 'elm', 'fir'];
const counts = (carried: number, condensed: number, dropped = 0) => ({ carried, condensed, dropped });

/** A conversation of six turns. Claude condenses the first three in the fourth. */
async function sixTurns(adapter: ClaudeAdapter) {
  const home = await ClaudeHome.make(adapter, SETTINGS, {}, { window: 100_000 });
  const cwd = home.directory('work');
  const tl = await home.open();
  const chat = tl.conversation('chat', { cwd });
  const answers = [];
  for (const word of WORDS)
    answers.push(await chat.ask(`${codeword(word)}${'bcde'.includes(word.charAt(0)) ? LONG : ''}`));
  const served = home.model.served.inputTokens;
  await tl.close();
  return { home, answers, served };
}

/** Each test opens Throughline again, and adds turns to the same conversation. */
function inOneConversation(adapter: ClaudeAdapter): void {
  let home: ClaudeHome;
  let fixture: Awaited<ReturnType<typeof sixTurns>>;
  let tl: Throughline;
  /** The number of turns before the test. The first three are condensed. */
  let turns: number;

  beforeAll(async () => {
    fixture = await sixTurns(adapter);
    ({ home } = fixture);
  });
  afterAll(() => home[Symbol.asyncDispose]());
  beforeEach(async () => {
    tl = await home.open();
    turns = (await tl.conversation('chat').turns()).length;
  });
  afterEach(() => tl.close());

  test('receipts count the turns in Claude’s summary as condensed, in a running session and in a resumed one', async () => {
    expect(fixture.answers.map(({ receipt }) => receipt)).toMatchObject([
      counts(0, 0),
      counts(1, 0),
      counts(2, 0),
      counts(0, 3),
      counts(1, 3),
      counts(2, 3),
    ]);
    const chat = tl.conversation('chat');
    const { receipt, reply } = await chat.ask(WHICH_CODEWORDS);
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'proved', ...counts(turns - 3, 3) });
    // The answer comes from the summary. The request has only two long prompts, so the condensed turns are not in it.
    expect(reply).toContain('amber, birch, cedar, dune, elm, fir');
    const request = JSON.stringify(home.model.lastRequest()?.raw);
    expect(request).toContain('This session is being continued from a previous conversation');
    expect(request.split(LONG)).toHaveLength(3);
    expect((await chat.show()).sessions).toMatchObject([{ watermark: turns + 1, condensedTo: 3 }]);
  });

  test('the usage of the turn includes the call for the summary', () => {
    const { answers, served } = fixture;
    expect(answers.map(({ turn }) => turn.usage?.modelCalls)).toEqual([1, 1, 1, 2, 1, 1]);
    const tokens = answers.reduce((sum, { turn }) => sum + (turn.usage?.inputTokens ?? 0), 0);
    expect(tokens).toBe(served);
  });

  test('a deleted transcript is written back with its summary; with the rung rehydrate, with the turns themselves', async () => {
    for (const file of home.transcripts()) rmSync(file);
    const chat = tl.conversation('chat');
    const hello = await chat.ask('Hello.');
    const { payload } = await event(tl.engine, 'chat', 'restore.started', { turn: hello.turn.id });
    expect(payload).toEqual({ rung: 'resume', total: turns });
    expect(hello.receipt).toMatchObject({ rung: 'rehydrate', proof: 'proved', ...counts(turns - 3, 3) });
    const { receipt } = await chat.ask(WHICH_CODEWORDS, { restore: { rebuild: true, rung: 'rehydrate' } });
    // They are shortened to the budget: half of the window.
    expect(receipt).toMatchObject(counts(turns + 1, 0));
    expect(receipt.shortened).toBeGreaterThan(0);
  });
}

export function condensed(adapter: ClaudeAdapter, claude: InstalledClaude): void {
  describe('made in a conversation of ours:', () => inOneConversation(adapter));

  test('a session that was condensed elsewhere is adopted with its condensed and its carried turns', async () => {
    await using home = await ClaudeHome.make(adapter, SETTINGS);
    const cwd = home.directory('work');
    const id = randomUUID();
    const prompts = [codeword('amber'), codeword('birch'), '/compact', codeword('cedar')];
    await talkToClaude(claude, prompts, { id, cwd, env: home.env });
    const tl = await home.open();
    const first = await tl.conversation('chat', { cwd }).ask(WHICH_CODEWORDS, { session: id });
    expect(first.receipt).toMatchObject(counts(2, 2));
    expect(first.reply).toContain('amber, birch, cedar');
    await tl.close();
    const again = (await home.open()).conversation('chat');
    expect((await again.ask('Hello.')).receipt).toMatchObject({ rung: 'resume', ...counts(3, 2) });
  });

  test('a session that Claude condensed in the middle of a turn is adopted with all of its answers', async () => {
    await using home = await ClaudeHome.make(adapter, SETTINGS);
    const cwd = home.directory('work');
    const id = randomUUID();
    const prompts = ['birch', 'cedar', 'dune'].map((word) => `${codeword(word)}${LONG}`);
    await talkToClaude(claude, [codeword('amber'), ...prompts], { id, cwd, env: home.env });
    const tl = await home.open();
    const chat = tl.conversation('chat', { cwd });
    const { receipt } = await chat.ask(WHICH_CODEWORDS, { session: id });
    expect(receipt.condensed).toBeGreaterThan(0);
    const { turns } = await chat.show();
    expect(turns.map(({ state }) => state)).toEqual(Array.from({ length: 5 }, () => 'completed'));
    for (const { reply } of turns) expect(reply).toMatch(/\S/);
  });
}
