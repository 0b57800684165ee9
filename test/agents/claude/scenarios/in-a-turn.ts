import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isAlive } from '../../../contracts/liveness.ts';
import { ended, event, until } from '../../../e2e/support/conversations.ts';
import { bash, type ClaudeAdapter, ClaudeHome, FIRST, SECOND, SharedChat, THIRD } from '../../support/claude-home.ts';

export function inATurn(adapter: ClaudeAdapter): void {
  describe('in one conversation:', () => turnsOfOneConversation(adapter));

  test('a turn is interrupted by the limit for silence, and by the limit for spending', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const cwd = home.directory('work');
    const stuck = tl.conversation('stuck', { cwd });
    // Claude is started here, so that its start does not count as silence.
    await stuck.ask(FIRST);
    const { turn } = await stuck.send(bash('echo $$ > pid; exec sleep 600'), { limits: { stallSeconds: 8 } }).accepted;
    expect(await ended(tl.engine, turn)).toMatchObject({ state: 'interrupted', failure: { code: 'stalled' } });
    const pid = Number(readFileSync(join(cwd, 'pid'), 'utf8'));
    await until('the tool has ended', () => !isAlive(pid));
    expect((await stuck.ask(SECOND)).turn.state).toBe('completed');
    // Every request to the model has thousands of tokens: the first one spends the limit, and the second is never answered.
    const chat = tl.conversation('spent', { cwd, limitPerDay: '500 tokens' });
    const twoRequests = [bash('echo first >> said'), 'model: slow 60000ms', bash('echo second >> said')].join('\n');
    const spent = await ended(tl.engine, (await chat.send(twoRequests).accepted).turn);
    expect(spent).toMatchObject({ state: 'interrupted', failure: { code: 'over_budget' } });
    expect(readFileSync(join(cwd, 'said'), 'utf8')).toBe('first\n');
    await expect(chat.ask(FIRST)).rejects.toMatchObject({ code: 'over_budget' });
  });

  test('nothing is sent if Claude cannot write its transcript', async () => {
    await using home = await ClaudeHome.make(adapter);
    writeFileSync(join(home.config, 'projects'), 'in the way');
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send(FIRST).accepted;
    expect((await ended(tl.engine, turn)).failure).toMatchObject({ code: 'agent_failed' });
    expect(home.model.requests).toEqual([]);
  });
}

/** The tests share one conversation: each continues after the turns of the tests before it. */
function turnsOfOneConversation(adapter: ClaudeAdapter): void {
  let chat: SharedChat;
  beforeAll(async () => {
    chat = await SharedChat.start(adapter, { permissions: { allow: ['Agent'] } });
  });
  afterAll(() => chat[Symbol.asyncDispose]());

  test('the usage of a turn is only its own, also after a restart', async () => {
    const before = { ...chat.home.model.served };
    const usages = [];
    for (const prompt of [FIRST, SECOND]) usages.push((await chat.ask(prompt)).turn.usage);
    await chat.reopen();
    usages.push((await chat.ask(THIRD)).turn.usage);
    for (const usage of usages) {
      expect(usage?.modelCalls).toBe(1);
      expect(usage?.costMicros).toBeGreaterThan(0);
      expect(usage?.costMicros).toBeLessThan((usages[0]?.costMicros ?? 0) * 1.5);
    }
    const { inputTokens, outputTokens } = chat.home.model.served;
    expect(sum(usages.map((usage) => usage?.inputTokens))).toBe(inputTokens - before.inputTokens);
    expect(sum(usages.map((usage) => usage?.outputTokens))).toBe(outputTokens - before.outputTokens);
  });

  test('the model gets the prompt unchanged, also if it looks like a command, a file or a shell command', async () => {
    const { home, cwd, prompts } = chat;
    writeFileSync(join(cwd, 'notes.txt'), 'sequoia');
    for (const prompt of [FIRST, '/clear', '/compact', '@notes.txt', '!touch effect', '#remember', '/exit'])
      await chat.ask(prompt);
    home.expectConversation(...prompts);
    expect(JSON.stringify(home.model.requests.map(({ raw }) => raw))).not.toContain('sequoia');
    expect(existsSync(join(cwd, 'effect'))).toBe(false);
  });

  test('the usage of a turn includes its subagents', async () => {
    const before = { ...chat.home.model.served };
    const task = { description: 'an errand', prompt: 'model: say Done.', subagent_type: 'general-purpose' };
    const { turn } = await chat.ask(`model: tool Agent ${JSON.stringify(task)}`);
    const { answers, inputTokens, outputTokens } = chat.home.model.served;
    expect(answers - before.answers).toBe(3);
    expect(turn.usage).toMatchObject({
      inputTokens: inputTokens - before.inputTokens,
      outputTokens: outputTokens - before.outputTokens,
      modelCalls: answers - before.answers,
    });
  });

  test('a cancelled turn ends as cancelled, and the next request has it with that outcome', async () => {
    const { home, tl } = chat;
    await chat.ask(FIRST);
    expect(JSON.stringify(home.model.lastRequest()?.messages)).not.toContain('chunk');
    const { turn } = await chat.conversation.send('model: stream 10000 20ms').accepted;
    await event(tl.engine, 'chat', 'turn.update', { turn: turn.id });
    await tl.engine.cancel(turn.id);
    // Claude reports nothing of the request that was cut off.
    expect(await ended(tl.engine, turn)).toMatchObject({
      state: 'cancelled',
      usage: { costMicros: 0, unknownCosts: 1 },
    });
    const { reply } = await chat.ask('Which codewords have you seen?');
    expect(reply).toContain('amber');
    const messages = JSON.stringify(home.model.lastRequest()?.messages);
    expect(messages).toContain('chunk 1');
    const { length } = await tl.engine.turns('chat');
    expect(messages).toContain(`[turn ${length - 1}] did not complete: cancelled`);
  });

  test('Claude repeats a request to an overloaded API, and a cut answer is in the reply only once', async () => {
    const { turn } = await chat.ask('model: fail 529 1 times');
    const { reply } = await chat.ask('model: stream 4 20ms\nmodel: break 1 times');
    expect(turn.state).toBe('completed');
    expect(reply).toBe('chunk 1 chunk 2 chunk 3 chunk 4 ');
  });

  test('a tool runs only if its permission is allowed, and the turn completes in both cases', async () => {
    const { cwd, tl } = chat;
    const file = join(cwd, 'effect');
    const prompt = bash('touch effect');
    for (const kind of ['reject_once', 'allow_once', 'allow_always'] as const) {
      rmSync(file, { force: true });
      const { turn } = await chat.conversation.send(prompt).accepted;
      await event(tl.engine, 'chat', 'permission.asked', { turn: turn.id });
      const [permission] = await tl.engine.permissions({ conversation: 'chat', open: true });
      const option = permission?.options.find((one) => one.kind === kind);
      await tl.engine.answer(permission?.id ?? '', option?.optionId ?? '');
      expect((await ended(tl.engine, turn)).state).toBe('completed');
      expect(existsSync(file)).toBe(kind !== 'reject_once');
    }
    rmSync(file);
    await chat.ask(prompt); // allow_always: no further permission is needed
    expect(existsSync(file)).toBe(true);
    expect(existsSync(join(cwd, '.claude'))).toBe(false);
  });
}

function sum(values: readonly (number | undefined)[]): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0);
}
