// Claude is ended, or its files change, between two turns. It must keep its context.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { conversationOf } from '../../../../src/testing/index.ts';
import { killAgent, storedSessions } from '../../../e2e/support/stored.ts';
import { type InstalledClaude, runClaude } from '../../support/claude.ts';
import {
  type ClaudeAdapter,
  ClaudeHome,
  codeword,
  FIRST,
  FOURTH,
  SECOND,
  SharedChat,
  THIRD,
  withAnswers,
} from '../../support/claude-home.ts';

export function contextKept(adapter: ClaudeAdapter, claude: InstalledClaude): void {
  let chat: SharedChat;
  beforeAll(async () => {
    chat = await SharedChat.start(adapter);
    for (const prompt of [FIRST, SECOND, THIRD]) await chat.ask(prompt);
  });
  afterAll(() => chat[Symbol.asyncDispose]());

  test('after a kill of Claude and a restart, the next request has everything before it in order', async () => {
    const { home, prompts } = chat;
    const { id } = await chat.session();
    killAgent(home);
    await chat.reopen();
    const { receipt } = await chat.ask(FOURTH);
    home.expectConversation(...prompts);
    const carried = prompts.length - 1;
    expect(receipt).toMatchObject({ rung: 'resume', carried, dropped: 0, modelCalls: 0, proof: 'proved' });
    expect(receipt.sessionId).toBe(id);
  });

  test('deleted files are written back byte for byte, also if Throughline is started in another directory', async () => {
    const { home, prompts } = chat;
    const { file } = await chat.session();
    const copied = storedSessions(home)[0]?.mirrored ?? 0;
    const originalDirectory = process.cwd();
    let before = Buffer.alloc(0);
    const prompt = codeword('ebony');
    const carried = prompts.length;
    try {
      await chat.reopen(() => {
        before = readFileSync(file);
        rmSync(join(home.config, 'projects'), { recursive: true });
        process.chdir(home.directory('elsewhere'));
      });
      const { receipt } = await chat.ask(prompt);
      expect(receipt).toMatchObject({ rung: 'rehydrate', carried, dropped: 0, modelCalls: 0, proof: 'proved' });
      const [written, sent] = (await chat.conversation.told()).parts;
      expect(written).toMatchObject({ as: 'transcript', text: before.subarray(0, copied).toString() });
      expect(sent).toMatchObject({ as: 'prompt', turn: prompts.length, content: [{ type: 'text', text: prompt }] });
    } finally {
      process.chdir(originalDirectory);
    }
    home.expectConversation(...prompts);
    // Claude writes more when its process ends. Our copy was made before, and those lines are not part of the conversation.
    expect(copied).toBeGreaterThan(before.length / 2);
    expect(readFileSync(file).subarray(0, copied).equals(before.subarray(0, copied))).toBe(true);
  });

  test('a fork in another directory and the original each have only their own prompts', async () => {
    const { home, prompts, tl } = chat;
    await tl.engine.fork('chat', { turn: 2, key: 'fork', cwd: home.directory('other') });
    const { receipt } = await tl.conversation('fork').ask(codeword('flint'));
    home.expectConversation(FIRST, SECOND, codeword('flint'));
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 2, dropped: 0, modelCalls: 0, proof: 'proved' });
    await chat.ask('Go on.');
    home.expectConversation(...prompts);
    await tl.conversation('fork').ask('Go on.');
    home.expectConversation(FIRST, SECOND, codeword('flint'), 'Go on.');
  });

  test('when two processes send ten prompts at once, each request has all earlier ones', async () => {
    await using home = await ClaudeHome.make(adapter);
    const hosts = await Promise.all([home.host(), home.host()]);
    const words = Array.from({ length: 10 }, (_, i) => codeword(`word-${i + 1}`));
    await Promise.all(words.map((word, i) => hosts[i % 2]?.calls.ask('chat', word)));
    const requests = home.model.requests.filter(({ side }) => !side).map((request) => conversationOf(request));
    expect(requests).toHaveLength(10);
    const order = requests.map((messages) => messages.at(-1)?.text ?? '');
    expect(order.toSorted()).toEqual(words.toSorted());
    for (const [k, messages] of requests.entries()) expect(messages).toEqual(withAnswers(order.slice(0, k + 1)));
  });

  test('a damaged transcript is not resumed: a new one is written from our records', async () => {
    const { home, prompts } = chat;
    const { file } = await chat.session();
    await chat.reopen(() => {
      const lines = readFileSync(file, 'utf8').split('\n');
      const at = lines.findIndex((line) => line.includes('"type":"user"') && line.includes('birch'));
      lines[at] = lines[at]?.slice(0, -20) ?? '';
      writeFileSync(file, lines.join('\n'));
    });
    const { receipt } = await chat.ask(codeword('grape'));
    home.expectConversation(...prompts);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: prompts.length - 1, dropped: 0, proof: 'proved' });
    expect(receipt.tried).toMatchObject([{ rung: 'resume' }]);
  });

  test('a transcript with edited text is not resumed, although its position is the same', async () => {
    const { home, prompts } = chat;
    const { id, file } = await chat.session();
    await chat.reopen(() => writeFileSync(file, readFileSync(file, 'utf8').replaceAll('birch', 'FORGED')));
    const { receipt } = await chat.ask(codeword('hazel'));
    home.expectConversation(...prompts);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: prompts.length - 1, dropped: 0, proof: 'proved' });
    expect(receipt.tried).toMatchObject([{ rung: 'resume', sessionId: id }]);
    expect(receipt.tried[0]?.failure).toContain('its transcript was changed');
    expect((await chat.tl.engine.sessions('chat')).find((one) => one.id === id)?.state).toBe('diverged');
  });

  test('a session that somebody else resumed between two turns is diverged, and their prompt is not used', async () => {
    const { home, prompts, cwd } = chat;
    const { id } = await chat.session();
    await chat.reopen(async () => {
      const run = await runClaude(claude, ['--resume', id, codeword('foreign')], { cwd, env: home.env });
      expect(run.result.is_error).toBe(false);
    });
    const { receipt } = await chat.ask(codeword('ivory'));
    home.expectConversation(...prompts);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: prompts.length - 1, proof: 'proved' });
    expect((await chat.tl.engine.sessions('chat')).find((one) => one.id === id)?.state).toBe('diverged');
  });
}
