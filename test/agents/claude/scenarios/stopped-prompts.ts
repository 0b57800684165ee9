// A hook in the settings of the user runs before each prompt. It may stop the prompt, or kill Claude.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Throughline } from '../../../../src/index.ts';
import { ended } from '../../../e2e/support/conversations.ts';
import { type ClaudeAdapter, ClaudeHome, FIRST, FOURTH, SECOND, SharedChat, THIRD } from '../../support/claude-home.ts';

const settingsWithHook = (command: string) => ({
  hooks: { UserPromptSubmit: [{ hooks: [{ type: 'command', command }] }] },
});
const STOPPED = 'Not this.';
const STOPS = settingsWithHook(`if grep -q "${STOPPED}"; then echo "house rules" >&2; exit 2; fi`);
/** Runs the command at the second attempt. The first attempt creates a file to recognise the second, and fails at the API. */
const atSecondAttempt = (command: string) =>
  settingsWithHook(`if grep -q Twice; then if rm ~/tried; then ${command}; else touch ~/tried; fi; fi`);

/** Sends a prompt that the hook stops, and waits for the end of its turn. */
async function sendStoppedPrompt(tl: Throughline, key: string) {
  const { turn } = await tl.conversation(key).send(STOPPED).accepted;
  return ended(tl.engine, turn);
}

export function stoppedPrompts(adapter: ClaudeAdapter): void {
  let chat: SharedChat;
  beforeAll(async () => {
    chat = await SharedChat.start(adapter, STOPS);
    await chat.ask(FIRST);
  });
  afterAll(() => chat[Symbol.asyncDispose]());

  test('a stopped prompt fails its turn with the reason, and is not part of the conversation', async () => {
    const { home, tl, prompts } = chat;
    const { state, failure } = await sendStoppedPrompt(tl, 'chat');
    expect({ state, code: failure?.code }).toEqual({ state: 'failed', code: 'agent_failed' });
    expect(failure?.message).toContain('house rules');
    // The session continues without the prompt, and the hook does not see it again.
    const { receipt } = await chat.ask(SECOND);
    home.expectConversation(...prompts);
    expect(receipt).toMatchObject({ carried: prompts.length - 1, delivered: 0, unsettled: false, proof: 'proved' });
    // The same for the first prompt of a session, of which Claude then writes nothing.
    await sendStoppedPrompt(tl, 'another');
    for (const prompt of [FIRST, SECOND]) await tl.conversation('another').ask(prompt);
    const third = await tl.conversation('another').ask(THIRD);
    home.expectConversation(FIRST, SECOND, THIRD);
    expect(third.receipt).toMatchObject({ rung: 'live', carried: 2, proof: 'proved' });
  });

  test('our copy of the transcript contains what Claude notes about a stopped prompt', async () => {
    const { home, prompts } = chat;
    const { receipt: before } = await chat.ask(THIRD);
    await sendStoppedPrompt(chat.tl, 'chat');
    await chat.reopen(() => rmSync(join(home.config, 'projects'), { recursive: true }));
    const { receipt } = await chat.ask(FOURTH);
    home.expectConversation(...prompts);
    // The session keeps its id only if the copy is complete. A transcript from our records would have a new id.
    expect(receipt).toMatchObject({ rung: 'rehydrate', proof: 'proved', sessionId: before.sessionId });
  });

  test.each([
    ['kills Claude', 'kill -9 $PPID', 'interrupted'],
    ['stops the prompt', 'echo "house rules" >&2; exit 2', 'failed'],
  ])(
    'when the hook %s at the second attempt, the rewound session is still used afterwards',
    async (_, command, state) => {
      await using home = await ClaudeHome.make(adapter, atSecondAttempt(command), { CLAUDE_CODE_MAX_RETRIES: '0' });
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
    },
  );
}
