import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { NO_USAGE } from '../../src/core/usage.ts';
import type { ExportedConversation, Throughline, TurnRecord } from '../../src/index.ts';
import { acknowledgement, conversationOf } from '../../src/testing/index.ts';
import { until } from '../contracts/agent-room.ts';
import { ended, event } from '../e2e/support/conversations.ts';
import { findClaude, type InstalledClaude, NOT_INSTALLED, runClaude } from './claude.ts';
import { type ClaudeAdapter, ClaudeHome, codeword, told } from './claude-home.ts';

const [FIRST, SECOND, THIRD, FOURTH] = ['amber', 'birch', 'cedar', 'denim'].map(codeword) as [
  string,
  string,
  string,
  string,
];
const bash = (command: string) => `model: tool Bash ${JSON.stringify({ command })}`;

/** What the real program does with a conversation of ours, however it is run. */
export function claudeScenarios(adapter: ClaudeAdapter): void {
  const claude = findClaude();
  if (claude === null) {
    test(`${adapter} keeps its context`, (context) => context.skip(NOT_INSTALLED));
    return;
  }
  describe(`${adapter} keeps its context`, () => contextKept(adapter, claude));
  describe(`${adapter} and a long history`, () => longHistory(adapter));
  describe(`${adapter} while it is warm`, () => whileWarm(adapter, claude));
  describe(`${adapter} after a crash, and in a replay`, () => crashes(adapter));
  describe(`${adapter} in a turn`, () => inATurn(adapter));
}

async function threeTurns(tl: Throughline, key = 'chat', cwd?: string): Promise<void> {
  const chat = tl.conversation(key, cwd === undefined ? {} : { cwd });
  for (const prompt of [FIRST, SECOND, THIRD]) await chat.ask(prompt);
}

function contextKept(adapter: ClaudeAdapter, claude: InstalledClaude): void {
  test('the agent is killed and Throughline opened again: the fourth request has the first three, in order', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    await threeTurns(tl);
    const [session] = await tl.engine.sessions('chat');
    if (session?.process) process.kill(session.process.pid, 'SIGKILL');
    await tl.close();
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'resume', carried: 3, dropped: 0, modelCalls: 0, proof: 'proved' });
    expect(receipt.sessionId).toBe(session?.id);
  });

  test('its files are deleted, and Throughline is started from elsewhere: they are put back byte for byte', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    await threeTurns(tl);
    const [session] = await tl.engine.sessions('chat');
    await tl.close();
    const [file = ''] = home.transcripts();
    const before = readFileSync(file);
    rmSync(join(home.config, 'projects'), { recursive: true });
    const here = process.cwd();
    process.chdir(home.directory('elsewhere'));
    try {
      const again = await home.open();
      const { receipt } = await again.conversation('chat').ask(FOURTH);
      expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 3, dropped: 0, modelCalls: 0, proof: 'proved' });
    } finally {
      process.chdir(here);
    }
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    // What Claude writes as its process ends comes after our copy was made, and is no part of the conversation.
    const copied = session?.mirrored ?? 0;
    expect(copied).toBeGreaterThan(before.length / 2);
    expect(readFileSync(file).subarray(0, copied).equals(before.subarray(0, copied))).toBe(true);
  });

  test('forks go on apart, one of them in another directory, each with its own codewords only', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    await threeTurns(tl);
    await tl.engine.fork('chat', { turn: 2, key: 'fork', cwd: home.directory('other') });
    const { receipt } = await tl.conversation('fork').ask(FOURTH);
    home.expectTold(FIRST, SECOND, FOURTH);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 2, dropped: 0, modelCalls: 0, proof: 'proved' });
    await tl.conversation('chat').ask('Go on.');
    home.expectTold(FIRST, SECOND, THIRD, 'Go on.');
    await tl.conversation('fork').ask('Go on.');
    home.expectTold(FIRST, SECOND, FOURTH, 'Go on.');
  });

  test('ten prompts at once from two processes: each request has all that came before it', async () => {
    await using home = await ClaudeHome.make(adapter);
    const hosts = await Promise.all([home.host(), home.host()]);
    const words = Array.from({ length: 10 }, (_, i) => codeword(`word-${i + 1}`));
    await Promise.all(words.map((word, i) => hosts[i % 2]?.calls.ask('chat', word)));
    const requests = home.model.requests.filter(({ side }) => !side).map((request) => conversationOf(request));
    expect(requests).toHaveLength(10);
    const order = requests.map((said) => said.at(-1)?.text ?? '');
    expect(order.toSorted()).toEqual(words.toSorted());
    for (const [k, said] of requests.entries()) expect(said).toEqual(told(order.slice(0, k + 1)));
  });

  test('a damaged transcript is not resumed, and the context comes from our history', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    await threeTurns(tl);
    await tl.close();
    const [file = ''] = home.transcripts();
    const lines = readFileSync(file, 'utf8').split('\n');
    const at = lines.findIndex((line) => line.includes('"type":"user"') && line.includes('birch'));
    lines[at] = lines[at]?.slice(0, -20) ?? '';
    writeFileSync(file, lines.join('\n'));
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 3, dropped: 0, proof: 'proved' });
    expect(receipt.tried).toMatchObject([{ rung: 'resume' }]);
  });

  test('somebody resumes the session by hand in between: it is diverged, and nothing of theirs is taken over', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const cwd = home.directory('work');
    await threeTurns(tl, 'chat', cwd);
    await tl.close();
    const id = (await (await home.open()).engine.sessions('chat'))[0]?.id ?? '';
    const run = await runClaude(claude, ['--resume', id, codeword('foreign')], { cwd, env: home.env });
    expect(run.result.is_error).toBe(false);
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 3, proof: 'proved' });
    expect((await again.engine.sessions('chat')).find((one) => one.id === id)?.state).toBe('diverged');
  });
}

function longHistory(adapter: ClaudeAdapter): void {
  test('a thousand turns that Claude never saw are restored without a model call; what is dropped is counted', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const words = Array.from({ length: 1_000 }, (_, i) => `word-${i + 1}`);
    await tl.engine.import(exportedOf(words), { key: 'all' });
    const all = await tl.conversation('all', { agent: 'claude' }).ask('Which codewords have you seen?');
    expect(all.receipt).toMatchObject({
      rung: 'rehydrate',
      carried: 1_000,
      dropped: 0,
      modelCalls: 0,
      proof: 'proved',
    });
    expect(all.reply).toBe(`I have seen these codewords: ${words.join(', ')}.`);
    expect(home.model.requests.filter(({ side }) => !side)).toHaveLength(1);

    await tl.engine.import(exportedOf(words), { key: 'some' });
    const some = await tl
      .conversation('some', { agent: 'claude' })
      .ask('Which codewords have you seen?', { restore: { budgetTokens: 5_000 } });
    const { carried, dropped } = some.receipt;
    expect(carried).toBeGreaterThan(50);
    expect(carried + dropped).toBe(1_000);
    expect(some.reply).toBe(`I have seen these codewords: ${words.slice(dropped).join(', ')}.`);
  });
}

/** A conversation that another agent has held, as it is exported. */
function exportedOf(words: readonly string[]): ExportedConversation {
  const records = words.map((word, i): TurnRecord => {
    const prompt = codeword(word);
    return {
      version: 1,
      n: i + 1,
      agent: 'another',
      sessionId: null,
      outcome: 'completed',
      prompt: [{ type: 'text', text: prompt }],
      parts: [{ type: 'text', text: acknowledgement(prompt) }],
      failure: null,
      usage: NO_USAGE,
      startedAt: i,
      endedAt: i,
    };
  });
  const conversation = { key: null, title: 'Words', agent: null, restore: {} };
  return { format: 'throughline.conversation', version: 1, conversation, records, sessions: [] };
}

function whileWarm(adapter: ClaudeAdapter, claude: InstalledClaude): void {
  test('somebody resumes the session while it is warm: it is let go, and nothing of theirs is taken over', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const cwd = home.directory('work');
    await threeTurns(tl, 'chat', cwd);
    const id = (await tl.engine.sessions('chat'))[0]?.id ?? '';
    await runClaude(claude, ['--resume', id, codeword('foreign')], { cwd, env: home.env });
    const { receipt } = await tl.conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 3, proof: 'proved' });
    expect((await tl.engine.sessions('chat')).find((one) => one.id === id)?.state).toBe('diverged');
  });

  test('its files are deleted while it is warm: they are put back', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    await threeTurns(tl);
    rmSync(join(home.config, 'projects'), { recursive: true });
    const { receipt } = await tl.conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 3, proof: 'proved' });
  });

  test('with a home in the sandbox nothing is kept in the person’s own', async () => {
    await using home = await ClaudeHome.make(adapter, {}, {}, { home: 'sandbox' });
    const tl = await home.open();
    await threeTurns(tl);
    await tl.close();
    const { receipt } = await (await home.open()).conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'proved' });
    expect(existsSync(join(home.config, 'projects'))).toBe(false);
  });
}

function crashes(adapter: ClaudeAdapter): void {
  test('Throughline is killed while a tool runs: one side effect, an interrupted turn, and the next one knows', async () => {
    await using home = await ClaudeHome.make(adapter);
    const cwd = home.directory('work');
    const effects = join(cwd, 'effects.log');
    const host = await home.host();
    await host.calls.ask('chat', FIRST, { cwd });
    const asked = host.calls.ask('chat', bash('echo line >> effects.log; sleep 60; echo late >> effects.log'));
    asked.catch(() => {});
    await until('the tool runs', () => existsSync(effects));
    await host.kill();
    const tl = await home.open();
    const { reply, receipt } = await tl.conversation('chat').ask('Which codewords have you seen?');
    expect(reply).toContain('amber');
    expect(receipt).toMatchObject({ carried: 2, dropped: 0, unsettled: true, proof: 'proved' });
    expect((await tl.engine.turns('chat')).map((turn) => turn.state)).toEqual([
      'completed',
      'interrupted',
      'completed',
    ]);
    const request = home.model.lastRequest();
    expect(JSON.stringify(request && conversationOf(request))).toMatch(/\[turn 2\] tool Bash\b.*: unknown/);
    expect(readFileSync(effects, 'utf8')).toBe('line\n');
  });

  test('a replay asks the model once a turn and runs no tool; afterwards tools run', async (context) => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    if (!(await tl.engine.agents())[0]?.traits?.noTools) context.skip('no profile without tools is proved');
    const cwd = home.directory('work');
    const effects = join(cwd, 'effects.log');
    const chat = tl.conversation('chat', { cwd });
    await chat.ask(FIRST);
    await chat.ask(bash('echo line >> effects.log'));
    const before = home.model.requests.filter(({ side }) => !side).length;
    const { receipt, reply } = await chat.ask('Which codewords have you seen?', { restore: { rung: 'replay' } });
    expect(receipt).toMatchObject({ rung: 'replay', modelCalls: 2, carried: 2, toolsRan: [] });
    expect(home.model.requests.filter(({ side }) => !side).length - before).toBe(3);
    expect(reply).toContain('amber');
    expect(readFileSync(effects, 'utf8')).toBe('line\n');
    await chat.ask(bash('echo line >> effects.log'));
    expect(readFileSync(effects, 'utf8')).toBe('line\nline\n');
  });
}

function inATurn(adapter: ClaudeAdapter): void {
  test('an overloaded API is asked again within the turn; a broken answer is not kept twice', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const chat = tl.conversation('chat');
    const { turn } = await chat.ask('model: fail 529 1 times');
    const { reply } = await chat.ask('model: stream 4 20ms\nmodel: break 1 times');
    expect(turn.state).toBe('completed');
    expect(reply).toBe('chunk 1 chunk 2 chunk 3 chunk 4 ');
  });

  test('usage is what the turn added, also after a restart', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const usages = [];
    for (const prompt of [FIRST, SECOND]) usages.push((await tl.conversation('chat').ask(prompt)).turn.usage);
    await tl.close();
    usages.push((await (await home.open()).conversation('chat').ask(THIRD)).turn.usage);
    for (const usage of usages) {
      expect(usage?.modelCalls).toBe(1);
      expect(usage?.costMicros).toBeGreaterThan(0);
      expect(usage?.costMicros).toBeLessThan((usages[0]?.costMicros ?? 0) * 1.5);
    }
    const { inputTokens, outputTokens } = home.model.served;
    expect(sum(usages.map((usage) => usage?.inputTokens))).toBe(inputTokens);
    expect(sum(usages.map((usage) => usage?.outputTokens))).toBe(outputTokens);
  });

  test('a cancelled turn ends as cancelled, and the next one is told of it', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const chat = tl.conversation('chat');
    await chat.ask(FIRST);
    const { turn } = await chat.send('model: stream 1000 20ms').accepted;
    await event(tl.engine, 'chat', 'turn.update', { turn: turn.id });
    await tl.engine.cancel(turn.id);
    expect((await ended(tl.engine, turn)).state).toBe('cancelled');
    const { reply } = await chat.ask('Which codewords have you seen?');
    expect(reply).toContain('amber');
  });

  test('a permission that is denied stops the tool and not the turn; one that is allowed lets it run', async () => {
    await using home = await ClaudeHome.make(adapter, {});
    const tl = await home.open();
    const cwd = home.directory('work');
    const chat = tl.conversation('chat', { cwd });
    const file = join(cwd, 'effect');
    const prompt = bash('touch effect');
    for (const kind of ['reject_once', 'allow_once', 'allow_always'] as const) {
      rmSync(file, { force: true });
      const { turn } = await chat.send(prompt).accepted;
      await event(tl.engine, 'chat', 'permission.asked', { turn: turn.id });
      const [permission] = await tl.engine.permissions({ conversation: 'chat', open: true });
      const option = permission?.options.find((one) => one.kind === kind);
      await tl.engine.answer(permission?.id ?? '', option?.optionId ?? '');
      expect((await ended(tl.engine, turn)).state).toBe('completed');
      expect(existsSync(file)).toBe(kind !== 'reject_once');
    }
    rmSync(file);
    await chat.ask(prompt); // not asked again
    expect(existsSync(file)).toBe(true);
    expect(existsSync(join(cwd, '.claude'))).toBe(false);
  });

  test('where Claude could not write its transcript, nothing is sent', async () => {
    await using home = await ClaudeHome.make(adapter);
    writeFileSync(join(home.config, 'projects'), 'in the way');
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send(FIRST).accepted;
    expect((await ended(tl.engine, turn)).failure).toMatchObject({ code: 'agent_failed' });
    expect(home.model.requests).toEqual([]);
  });
}

function sum(values: readonly (number | undefined)[]): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0);
}
