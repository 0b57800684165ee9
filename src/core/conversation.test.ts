import { describe, expect, test } from 'vitest';
import { TITLE_SOURCES, titleWins } from './conversation.ts';

describe('a title', () => {
  test('replaces one from a lower source, never one from a higher', () => {
    for (const [low, current] of TITLE_SOURCES.entries())
      for (const [high, next] of TITLE_SOURCES.entries()) {
        if (high > low) expect(titleWins(next, current)).toBe(true);
        if (high < low) expect(titleWins(next, current)).toBe(false);
      }
  });

  test('of the caller or the agent may change; the first prompt names a conversation once', () => {
    expect(titleWins('caller', 'caller')).toBe(true);
    expect(titleWins('agent', 'agent')).toBe(true);
    expect(titleWins('prompt', 'prompt')).toBe(false);
  });
});
