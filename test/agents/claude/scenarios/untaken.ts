// A hook of the person's settings looks at every prompt before Claude takes it, and may stop it, or Claude.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Throughline } from '../../../../src/index.ts';
import { ended } from '../../../e2e/support/conversations.ts';
import { type ClaudeAdapter, ClaudeHome, FIRST, FOURTH, SECOND, SharedChat, THIRD } from '../../support/claude-home.ts';

const hookOf = (command: string) => ({ hooks: { UserPromptSubmit: [{ hooks: [{ type: 'command', command }] }] } });
const STOPPED = 'Not this.';
const STOPS = hookOf(`if grep -q "${STOPPED}"; then echo "house rules" >&2; exit 2; fi`);
/** The first attempt leaves a mark, by which the second is known, and fails at the API. */
const atSecond = (command: string) =>
  hookOf(`if grep -q Twice; then if rm ~/tried; then ${command}; else touch ~/tried; fi; fi`);

async function stopped(tl: Throughline, key: string) {
  const { turn } = await tl.conversation(key).send(STOPPED).accepted;
  return ended(tl.engine, turn);
}

export function untaken(adapter: ClaudeAdapter): void {
  let chat: SharedChat;
  beforeAll(async () => {
    chat = await SharedChat.start(adapter, STOPS);
    await chat.ask(FIRST);
  });
  afterAll(() => chat[Symbol.asyncDispose]());

  test('a prompt that a hook of the user’s settings stops fails with the reason', async () => {
    const { home, tl, prompts } = chat;
    const { state, failure } = await stopped(tl, 'chat');
    expect({ state, code: failure?.code }).toEqual({ state: 'failed', code: 'agent_failed' });
    expect(failure?.message).toContain('house rules');
    // It is no part of the conversation: the hook does not see it again, and the session goes on as it was.
    const { receipt } = await chat.ask(SECOND);
    home.expectConversation(...prompts);
    expect(receipt).toMatchObject({ carried: prompts.length - 1, delivered: 0, unsettled: false, proof: 'proved' });
    // Also as the first one of its session, which nothing is written of then.
    await stopped(tl, 'another');
    for (const prompt of [FIRST, SECOND]) await tl.conversation('another').ask(prompt);
    const third = await tl.conversation('another').ask(THIRD);
    home.expectConversation(FIRST, SECOND, THIRD);
    expect(third.receipt).toMatchObject({ rung: 'live', carried: 2, proof: 'proved' });
  });

  test('our copy of its file contains what Claude notes about a stopped prompt', async () => {
    const { home, prompts } = chat;
    const { receipt: before } = await chat.ask(THIRD);
    await stopped(chat.tl, 'chat');
    await chat.reopen(() => rmSync(join(home.config, 'projects'), { recursive: true }));
    const { receipt } = await chat.ask(FOURTH);
    home.expectConversation(...prompts);
    // Byte for byte, and so under its own id; what is made from the records has another.
    expect(receipt).toMatchObject({ rung: 'rehydrate', proof: 'proved', sessionId: before.sessionId });
  });

  test.each([
    ['killed before it has written', 'kill -9 $PPID', 'interrupted'],
    ['stopped by a hook at', 'echo "house rules" >&2; exit 2', 'failed'],
  ])('%s the prompt for which it had gone back: nobody else has used the session', async (_, command, state) => {
    await using home = await ClaudeHome.make(adapter, atSecond(command), { CLAUDE_CODE_MAX_RETRIES: '0' });
    const tl = await home.open();
    const { receipt: before } = await tl.conversation('chat').ask(FIRST);
    const { turn } = await tl.conversation('chat').send('Twice.\nmodel: fail 529 1 times #twice').accepted;
    expect(await ended(tl.engine, turn)).toMatchObject({ state, attempt: 2 });
    await tl.close();
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(SECOND);
    const { sessionId } = before;
    expect(receipt).toMatchObject({ rung: 'resume', unsettled: true, proof: 'proved', sessionId, tried: [] });
    expect(await again.engine.sessions('chat')).toMatchObject([{ id: sessionId, state: 'live' }]);
  });
}
