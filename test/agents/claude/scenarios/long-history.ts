import { expect, test } from 'vitest';
import { type ClaudeAdapter, ClaudeHome } from '../../support/claude-home.ts';
import { exportedConversation } from '../../support/long-conversation.ts';

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
    const { carried, dropped } = some.receipt;
    expect(carried).toBeGreaterThan(50);
    expect(carried + dropped).toBe(1_000);
    expect(some.reply).toBe(`I have seen these codewords: ${words.slice(dropped).join(', ')}.`);
  });
}
