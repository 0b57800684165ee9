// Claude's files change while its process waits for the next turn, or during a turn.
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { conversationOf } from '../../../../src/testing/index.ts';
import { until } from '../../../contracts/agent-sandbox.ts';
import { type InstalledClaude, runClaude } from '../../support/claude.ts';
import {
  bash,
  type ClaudeAdapter,
  ClaudeHome,
  codeword,
  FIRST,
  FOURTH,
  SECOND,
  SharedChat,
  THIRD,
  threeTurns,
} from '../../support/claude-home.ts';

export function whileWarm(adapter: ClaudeAdapter, claude: InstalledClaude): void {
  let chat: SharedChat;
  beforeAll(async () => {
    chat = await SharedChat.start(adapter);
    for (const prompt of [FIRST, SECOND, THIRD]) await chat.ask(prompt);
  });
  afterAll(() => chat[Symbol.asyncDispose]());

  test('a session that somebody else resumes is diverged, and their prompt is not used', async () => {
    const { home, cwd, prompts } = chat;
    const { id } = await chat.session();
    await runClaude(claude, ['--resume', id, codeword('foreign')], { cwd, env: home.env });
    const { receipt } = await chat.ask(FOURTH);
    home.expectConversation(...prompts);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: prompts.length - 1, proof: 'proved' });
    expect((await chat.tl.engine.sessions('chat')).find((one) => one.id === id)?.state).toBe('diverged');
  });

  test('deleted files are written back', async () => {
    const { home, prompts } = chat;
    rmSync(join(home.config, 'projects'), { recursive: true, maxRetries: 5 });
    const { receipt } = await chat.ask(codeword('ebony'));
    home.expectConversation(...prompts);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: prompts.length - 1, proof: 'proved' });
  });

  test('when its files are deleted during a turn, the turn is not proved, and the next one has the whole context', async () => {
    const { home, cwd, prompts } = chat;
    writeFileSync(join(cwd, 'hold'), '');
    const answer = chat.ask(`${bash('touch begun; while [ -e hold ]; do sleep 0.1; done')}\n${codeword('flint')}`);
    await until('the tool runs', () => existsSync(join(cwd, 'begun')));
    await home.toolCallWritten();
    rmSync(join(home.config, 'projects'), { recursive: true, maxRetries: 5 });
    rmSync(join(cwd, 'hold'));
    expect((await answer).receipt.proof).not.toBe('proved');
    await chat.reopen();
    const { receipt } = await chat.ask(codeword('grape'));
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: prompts.length - 1, proof: 'proved' });
    const request = home.model.lastRequest();
    const messages = JSON.stringify(request && conversationOf(request));
    for (const prompt of [FIRST, SECOND, THIRD, codeword('flint'), codeword('grape')])
      expect(messages).toContain(prompt);
  });

  test('with the option home: sandbox, Claude writes nothing to the home of the user', async () => {
    await using home = await ClaudeHome.make(adapter, {}, {}, { home: 'sandbox' });
    const tl = await home.open();
    await threeTurns(tl);
    await tl.close();
    const { receipt } = await (await home.open()).conversation('chat').ask(FOURTH);
    home.expectConversation(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'proved' });
    expect(existsSync(join(home.config, 'projects'))).toBe(false);
  });
}
