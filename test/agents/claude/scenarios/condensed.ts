import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Throughline } from '../../../../src/index.ts';
import { event } from '../../../e2e/support/conversations.ts';
import { type InstalledClaude, talkToClaude } from '../../support/claude.ts';
import { ALLOW_BASH, type ClaudeAdapter, ClaudeHome, codeword } from '../../support/claude-home.ts';

// The smallest window that Claude accepts. Three prompts of this length do not fit into it.
const SETTINGS = { ...ALLOW_BASH, autoCompactWindow: 100_000 };
const LONG = ' lorem ipsum'.repeat(8_000);
const WORDS = ['amber', 'birch', 'cedar', 'dune', 'elm', 'fir'];
const QUESTION = 'Which codewords have you seen?';
const counts = (carried: number, condensed: number, dropped = 0) => ({ carried, condensed, dropped });

/** Six turns; Claude condenses by itself in the fourth. */
async function sixTurns(adapter: ClaudeAdapter) {
  const home = await ClaudeHome.make(adapter, SETTINGS, {}, { window: 100_000 });
  const cwd = home.directory('work');
  const tl = await home.open();
  const chat = tl.conversation('chat', { cwd });
  const said = [];
  for (const word of WORDS)
    said.push(await chat.ask(`${codeword(word)}${'bcde'.includes(word.charAt(0)) ? LONG : ''}`));
  const served = home.model.served.inputTokens;
  await tl.close();
  return { home, said, served };
}

/** Each opens the conversation anew, and adds turns to it. */
function byItself(adapter: ClaudeAdapter): void {
  let home: ClaudeHome;
  let made: Awaited<ReturnType<typeof sixTurns>>;
  let tl: Throughline;
  /** How many turns there are, three of which were condensed. */
  let turns: number;

  beforeAll(async () => {
    made = await sixTurns(adapter);
    ({ home } = made);
  });
  afterAll(() => home[Symbol.asyncDispose]());
  beforeEach(async () => {
    tl = await home.open();
    turns = (await tl.conversation('chat').turns()).length;
  });
  afterEach(() => tl.close());

  test('turns that the model has only as Claude’s summary are told apart, in a living and in a resumed session', async () => {
    expect(made.said.map(({ receipt }) => receipt)).toMatchObject([
      counts(0, 0),
      counts(1, 0),
      counts(2, 0),
      counts(0, 3),
      counts(1, 3),
      counts(2, 3),
    ]);
    const chat = tl.conversation('chat');
    const { receipt, reply } = await chat.ask(QUESTION);
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'proved', ...counts(turns - 3, 3) });
    // The model answers from the summary, and its own words show that the first turns are not there.
    expect(reply).toContain('amber, birch, cedar, dune, elm, fir');
    const told = JSON.stringify(home.model.lastRequest()?.raw);
    expect(told).toContain('This session is being continued from a previous conversation');
    expect(told.split(LONG)).toHaveLength(3);
    expect((await chat.show()).sessions).toMatchObject([{ watermark: turns + 1, condensedTo: 3 }]);
  });

  test('the usage of the turn includes the call for the summary', () => {
    const { said, served } = made;
    expect(said.map(({ turn }) => turn.usage?.modelCalls)).toEqual([1, 1, 1, 2, 1, 1]);
    const tokens = said.reduce((sum, { turn }) => sum + (turn.usage?.inputTokens ?? 0), 0);
    expect(tokens).toBe(served);
  });

  test('a deleted file comes back with its summary; on request, the turns themselves come back', async () => {
    for (const file of home.transcripts()) rmSync(file);
    const chat = tl.conversation('chat');
    const same = await chat.ask('Hello.');
    const { payload } = await event(tl.engine, 'chat', 'restore.started', { turn: same.turn.id });
    expect(payload).toEqual({ rung: 'resume', total: turns });
    expect(same.receipt).toMatchObject({ rung: 'rehydrate', proof: 'proved', ...counts(turns - 3, 3) });
    const { receipt } = await chat.ask(QUESTION, { restore: { rung: 'rehydrate' } });
    // As much of them as fits into the budget: half of the window.
    expect(receipt).toMatchObject(counts(turns + 1, 0));
    expect(receipt.shortened).toBeGreaterThan(0);
  });
}

export function condensed(adapter: ClaudeAdapter, claude: InstalledClaude): void {
  describe('that it makes by itself', () => byItself(adapter));

  test('a session that was condensed elsewhere is adopted with that said, and its later turns are carried', async () => {
    await using home = await ClaudeHome.make(adapter, SETTINGS);
    const cwd = home.directory('work');
    const id = randomUUID();
    const prompts = [codeword('amber'), codeword('birch'), '/compact', codeword('cedar')];
    await talkToClaude(claude, prompts, { id, cwd, env: home.env });
    const tl = await home.open();
    const first = await tl.conversation('chat', { cwd }).ask(QUESTION, { session: id });
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
    const { receipt } = await chat.ask(QUESTION, { session: id });
    expect(receipt.condensed).toBeGreaterThan(0);
    const { turns } = await chat.show();
    expect(turns.map(({ state }) => state)).toEqual(Array.from({ length: 5 }, () => 'completed'));
    for (const { reply } of turns) expect(reply).toMatch(/\S/);
  });
}
