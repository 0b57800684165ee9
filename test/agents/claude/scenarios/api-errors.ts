// The API fails until Claude gives up. Then the engine makes a second attempt.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Throughline } from '../../../../src/index.ts';
import { ended } from '../../../e2e/support/conversations.ts';
import { killAgent } from '../../../e2e/support/stored.ts';
import {
  ALLOW_BASH,
  bash,
  type ClaudeAdapter,
  ClaudeHome,
  codeword,
  FIRST,
  FOURTH,
  SECOND,
  THIRD,
} from '../../support/claude-home.ts';

/** Claude sends a request twice, and then gives up. */
const ONE_RETRY = { CLAUDE_CODE_MAX_RETRIES: '1' };
const NO_RETRY = { CLAUDE_CODE_MAX_RETRIES: '0' };

export function apiErrors(adapter: ClaudeAdapter): void {
  describe('in one conversation', () => inOneConversation(adapter));

  test('when the first prompt of a session fails, the next attempt uses a new session', async () => {
    await using home = await ClaudeHome.make(adapter, ALLOW_BASH, ONE_RETRY);
    const tl = await home.open();
    const failing = 'model: fail 529 2 times #first';
    const { turn } = await tl.conversation('chat').ask(failing);
    expect(turn).toMatchObject({ state: 'completed', attempt: 2 });
    home.expectConversation(failing);
    await tl.conversation('chat').ask(SECOND);
    home.expectConversation(failing, SECOND);
    expect((await tl.engine.sessions('chat')).map(({ state }) => state)).toEqual(['live', 'closed']);
  });

  test('after five failed turns the session still works, and has each of their prompts at most three times', async () => {
    await using home = await ClaudeHome.make(adapter, ALLOW_BASH, NO_RETRY);
    const tl = await home.open();
    const chat = tl.conversation('chat');
    await chat.ask(FIRST);
    const [before] = await tl.engine.sessions('chat');
    // 529 (overloaded) gets a second attempt within the turn, and 400 does not.
    const failing = { birch: 400, cedar: 529, denim: 400, ebony: 529, flint: 400 };
    const words = Object.keys(failing);
    for (const [word, status] of Object.entries(failing)) {
      const { turn } = await chat.send(`${codeword(word)}\nmodel: fail ${status} 9 times #${word}`).accepted;
      expect(await ended(tl.engine, turn)).toMatchObject({ state: 'failed', attempt: status === 529 ? 2 : 1 });
    }
    const { receipt } = await chat.ask(codeword('grape'));
    expect(receipt).toMatchObject({
      rung: 'resume',
      carried: 6,
      delivered: 5,
      unsettled: true,
      proof: 'proved',
      tried: [],
    });
    expect(receipt.sessionId).toBe(before?.id);
    // The first two failed prompts stay in the session. From the third on, each turn rewinds the session to before the failed prompt.
    const request =
      home.model
        .lastRequest()
        ?.messages.map(({ text }) => text)
        .join('\n') ?? '';
    const times = words.map((word) => request.split(codeword(word)).length - 1);
    expect(times).toEqual([3, 2, 1, 1, 1]);
    home.expectCodewords('amber', ...words, 'grape');
    // Nothing is delivered again, also after a kill of Claude.
    const [session] = await tl.engine.sessions('chat');
    expect(session).toMatchObject({ id: before?.id, state: 'live', watermark: 7 });
    killAgent(home);
    await tl.close();
    const again = await (await home.open()).conversation('chat').ask(codeword('hazel'));
    expect(again.receipt).toMatchObject({ rung: 'resume', carried: 7, delivered: 0, sessionId: before?.id });
    home.expectCodewords('amber', ...words, 'grape', 'hazel');
  });

  test('without a valid login there is no second attempt, and the failure says what to do', async () => {
    const cases = [
      { env: { ANTHROPIC_API_KEY: '' }, prompt: FIRST },
      { env: ONE_RETRY, prompt: 'model: fail 401 9 times' },
    ];
    for (const { env, prompt } of cases) {
      await using home = await ClaudeHome.make(adapter, ALLOW_BASH, env);
      const tl = await home.open();
      const { turn } = await tl.conversation('chat').send(prompt).accepted;
      const { state, attempt, failure } = await ended(tl.engine, turn);
      expect({ state, attempt, code: failure?.code }).toEqual({ state: 'failed', attempt: 1, code: 'signed_out' });
      expect(failure?.hint).toContain('ANTHROPIC_API_KEY');
    }
  });
}

/** The tests share one conversation: each continues after the turns of the tests before it. */
function inOneConversation(adapter: ClaudeAdapter): void {
  let home: ClaudeHome;
  let tl: Throughline;
  /** All prompts that were answered. */
  const prompts: string[] = [];
  const ask = (prompt: string) => {
    prompts.push(prompt);
    return tl.conversation('chat').ask(prompt);
  };
  const killAndReopen = async () => {
    killAgent(home);
    await tl.close();
    tl = await home.open();
  };
  beforeAll(async () => {
    home = await ClaudeHome.make(adapter, ALLOW_BASH, ONE_RETRY);
    tl = await home.open();
    await ask(FIRST);
  });
  afterAll(() => home[Symbol.asyncDispose]());

  test('the second attempt uses the same session without the failed prompt, also after a later kill', async () => {
    const [before] = await tl.engine.sessions('chat');
    const { turn, receipt } = await ask('model: fail 529 2 times #kept');
    expect(turn).toMatchObject({ state: 'completed', attempt: 2 });
    home.expectConversation(...prompts);
    const carried = prompts.length - 1;
    expect(receipt).toMatchObject({ rung: 'resume', carried, unsettled: false, proof: 'proved', tried: [] });
    expect(receipt.sessionId).toBe(before?.id);
    // The next prompt in the same process works, and also one after a kill, when Claude could write nothing more.
    await ask(SECOND);
    home.expectConversation(...prompts);
    await killAndReopen();
    const again = await ask(FOURTH);
    home.expectConversation(...prompts);
    expect(again.receipt).toMatchObject({
      rung: 'resume',
      carried: prompts.length - 1,
      proof: 'proved',
      sessionId: before?.id,
    });
  });

  test('after a kill right after a successful second attempt, the session continues from that attempt', async () => {
    const { turn } = await ask('model: fail 529 2 times #killed');
    expect(turn).toMatchObject({ state: 'completed', attempt: 2 });
    const [session] = await tl.engine.sessions('chat');
    await killAndReopen();
    const { receipt } = await ask(THIRD);
    home.expectConversation(...prompts);
    const carried = prompts.length - 1;
    expect(receipt).toMatchObject({ rung: 'resume', carried, proof: 'proved', sessionId: session?.id });
  });

  test('there is no second attempt if a tool has begun, or if the API reports an invalid request', async () => {
    for (const prompt of [`${bash('true')}\nmodel: fail 529 9 times #tool`, 'model: fail 400 9 times']) {
      const { turn } = await tl.conversation('chat').send(prompt).accepted;
      expect(await ended(tl.engine, turn)).toMatchObject({ state: 'failed', attempt: 1 });
    }
  });
}
