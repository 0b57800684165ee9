import { expect, test } from 'vitest';
import { type ClaudeAdapter, ClaudeHome } from '../../support/claude-home.ts';
import { exportedConversation } from '../../support/long-conversation.ts';

/** A line that Claude's stand-in model does not answer to. */
const LONG = `\n${'A long line of a long turn. '.repeat(200)}`;

export function longHistory(adapter: ClaudeAdapter): void {
  test('a thousand turns of another agent are restored without a model call, and dropped ones are counted', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const words = Array.from({ length: 1_000 }, (_, i) => `word-${i + 1}`);
    await tl.engine.import(exportedConversation(words), { key: 'all' });
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

    await tl.engine.import(exportedConversation(words), { key: 'some' });
    const some = await tl
      .conversation('some', { agent: 'claude' })
      .ask('Which codewords have you seen?', { restore: { budgetTokens: 5_000 } });
    const { carried, dropped, window } = some.receipt;
    expect(window, 'the budget is not that of the window').toBeNull();
    expect(carried).toBeGreaterThan(50);
    expect(carried + dropped).toBe(1_000);
    expect(some.reply).toBe(`I have seen these codewords: ${words.slice(dropped).join(', ')}.`);
  });

  test('the window that Claude reports of a model is used from its first answer on, and receipts say which was used', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const history = exportedConversation(Array.from({ length: 120 }, (_, i) => `word-${i + 1}`));
    const records = history.records.map(({ prompt, ...rest }) => ({
      ...rest,
      prompt: [...prompt, { type: 'text', text: LONG } as const],
    }));
    const ask = async (by: typeof tl, key: string, model?: string) => {
      await by.engine.import({ ...history, records }, { key });
      const { receipt } = await by.conversation(key, { agent: 'claude' }).ask('Go on.', model ? { model } : {});
      return receipt;
    };
    // Half of 200,000 tokens does not hold 120 turns of 1,900 tokens; half of a million does.
    const first = await ask(tl, 'first');
    expect(first).toMatchObject({ window: { tokens: 200_000, from: 'assumed' } });
    expect(first.dropped).toBeGreaterThan(50);
    const reported = { window: { tokens: 1_000_000, from: 'reported' }, carried: 120, dropped: 0 };
    expect(await ask(tl, 'second')).toMatchObject(reported);
    // Nothing is known of another model. A warm-up has the model of its conversation.
    await tl.engine.import({ ...history, records }, { key: 'warmed' });
    await tl.engine.ensure({ key: 'warmed', agent: 'claude', model: 'sonnet' });
    const warmed = await tl.engine.warm('warmed', { agent: 'claude' });
    expect(warmed).toMatchObject({ rung: 'rehydrate', window: { tokens: 200_000, from: 'assumed' } });
    expect(await ask(tl, 'another', 'sonnet')).toMatchObject({ window: { tokens: 200_000, from: 'assumed' } });
    expect(await ask(tl, 'again', 'sonnet')).toMatchObject(reported);
    await tl.close();
    // The next process, too.
    expect(await ask(await home.open(), 'later')).toMatchObject(reported);
  });
}
