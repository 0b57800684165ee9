// The API fails until Claude gives up; the engine asks once more.
import { expect, test } from 'vitest';
import { ended } from '../../e2e/support/conversations.ts';
import { killAgent } from '../../e2e/support/stored.ts';
import { ALLOW_BASH, bash, type ClaudeAdapter, ClaudeHome, codeword, FIRST, FOURTH, SECOND } from '../claude-home.ts';

/** Claude asks twice, and then gives up. */
const IMPATIENT = { CLAUDE_CODE_MAX_RETRIES: '1' };
const GIVES_UP_AT_ONCE = { CLAUDE_CODE_MAX_RETRIES: '0' };

export function apiErrors(adapter: ClaudeAdapter): void {
  test('the next attempt uses the same session without the failed prompt, also after a kill', async () => {
    await using home = await ClaudeHome.make(adapter, ALLOW_BASH, IMPATIENT);
    const tl = await home.open();
    const chat = tl.conversation('chat');
    await chat.ask(FIRST);
    const [before] = await tl.engine.sessions('chat');
    const failing = 'model: fail 529 2 times #kept';
    const { turn, receipt } = await chat.ask(failing);
    expect(turn).toMatchObject({ state: 'completed', attempt: 2 });
    home.expectTold(FIRST, failing);
    expect(receipt).toMatchObject({ rung: 'resume', carried: 1, unsettled: false, proof: 'proved', tried: [] });
    expect(receipt.sessionId).toBe(before?.id);
    // While it is warm, and after a death that left it no time to write a word.
    await chat.ask(SECOND);
    home.expectTold(FIRST, failing, SECOND);
    killAgent(home);
    await tl.close();
    const again = await (await home.open()).conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, failing, SECOND, FOURTH);
    expect(again.receipt).toMatchObject({ rung: 'resume', carried: 3, proof: 'proved', sessionId: before?.id });
  });

  test('killed right after a successful attempt, the session goes on from that one, not from the failed one', async () => {
    await using home = await ClaudeHome.make(adapter, ALLOW_BASH, IMPATIENT);
    const tl = await home.open();
    const failing = 'model: fail 529 2 times #killed';
    await tl.conversation('chat').ask(FIRST);
    await tl.conversation('chat').ask(failing);
    const [session] = await tl.engine.sessions('chat');
    killAgent(home);
    await tl.close();
    const { receipt } = await (await home.open()).conversation('chat').ask(SECOND);
    home.expectTold(FIRST, failing, SECOND);
    expect(receipt).toMatchObject({ rung: 'resume', carried: 2, proof: 'proved', sessionId: session?.id });
  });

  test('when the first prompt of a session fails, the next attempt uses a new session', async () => {
    await using home = await ClaudeHome.make(adapter, ALLOW_BASH, IMPATIENT);
    const tl = await home.open();
    const failing = 'model: fail 529 2 times #first';
    const { turn } = await tl.conversation('chat').ask(failing);
    expect(turn).toMatchObject({ state: 'completed', attempt: 2 });
    home.expectTold(failing);
    await tl.conversation('chat').ask(SECOND);
    home.expectTold(failing, SECOND);
    expect((await tl.engine.sessions('chat')).map(({ state }) => state)).toEqual(['live', 'closed']);
  });

  test('after five failed turns the session still works, and has none of their prompts more than three times', async () => {
    await using home = await ClaudeHome.make(adapter, ALLOW_BASH, GIVES_UP_AT_ONCE);
    const tl = await home.open();
    const chat = tl.conversation('chat');
    await chat.ask(FIRST);
    const [before] = await tl.engine.sessions('chat');
    // Some of them are tried again within the turn.
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
    // The first two stay in the session as they were; from the third on every turn goes back to before the last.
    const request =
      home.model
        .lastRequest()
        ?.messages.map(({ text }) => text)
        .join('\n') ?? '';
    const times = words.map((word) => request.split(codeword(word)).length - 1);
    expect(times).toEqual([3, 2, 1, 1, 1]);
    home.expectCodewords('amber', ...words, 'grape');
    // Nothing is told again, also after a death.
    const [session] = await tl.engine.sessions('chat');
    expect(session).toMatchObject({ id: before?.id, state: 'live', watermark: 7 });
    killAgent(home);
    await tl.close();
    const again = await (await home.open()).conversation('chat').ask(codeword('hazel'));
    expect(again.receipt).toMatchObject({ rung: 'resume', carried: 7, delivered: 0, sessionId: before?.id });
    home.expectCodewords('amber', ...words, 'grape', 'hazel');
  });

  test('without a valid login nothing is tried again, and the message says what to do', async () => {
    const cases = [
      { env: { ANTHROPIC_API_KEY: '' }, prompt: FIRST },
      { env: IMPATIENT, prompt: 'model: fail 401 9 times' },
    ];
    for (const { env, prompt } of cases) {
      await using home = await ClaudeHome.make(adapter, ALLOW_BASH, env);
      const tl = await home.open();
      const { turn } = await tl.conversation('chat').send(prompt).accepted;
      const { state, attempt, failure } = await ended(tl.engine, turn);
      expect({ state, attempt, code: failure?.code }).toEqual({ state: 'failed', attempt: 1, code: 'agent_failed' });
      expect(failure?.hint).toContain('ANTHROPIC_API_KEY');
    }
  });

  test('no second attempt when a tool had begun, or the API says that the request is invalid', async () => {
    await using home = await ClaudeHome.make(adapter, ALLOW_BASH, IMPATIENT);
    const tl = await home.open();
    for (const prompt of [`${bash('true')}\nmodel: fail 529 9 times #tool`, 'model: fail 400 9 times']) {
      const { turn } = await tl.conversation('chat').send(prompt).accepted;
      expect(await ended(tl.engine, turn)).toMatchObject({ state: 'failed', attempt: 1 });
    }
  });
}
