import { expect, test } from 'vitest';
import { addUsage, NO_USAGE } from '../turn/usage.ts';
import { NO_BUDGET, ofCompleted, withUnknownCost } from './budget.ts';
import { addSpending, type DayLimit, judgeSpending, leftOf, lower, NO_SPENDING, overspent } from './spending.ts';

const NOON = Date.parse('2026-03-01T12:00:00Z');
const usage = (tokens: number, costMicros: number) => ({ ...NO_USAGE, inputTokens: tokens, costMicros });
const limit = (whose: DayLimit['whose'], set: object, spent: object = {}): DayLimit => ({
  ...{ whose, limit: { ...NO_BUDGET, ...set }, spent: { ...NO_SPENDING, ...spent } },
});

test.each([
  ['nothing is spent', limit('owner', { tokens: 10 }), null],
  ['something is left', limit('owner', { tokens: 10, costMicros: 10 }, { tokens: 9, costMicros: 9 }), null],
  ['a unit without a limit does not count', limit('owner', { tokens: 10 }, { costMicros: 9e9 }), null],
  [
    'tokens are spent',
    limit('owner', { tokens: 10 }, { tokens: 10 }),
    /this owner .* is reached: 10 of 10 tokens spent/,
  ],
  [
    'money is spent',
    limit('conversation', { costMicros: 2_000_000 }, { costMicros: 2_500_000 }),
    /this conversation .* is reached: 2\.50 USD of 2\.00 USD spent/,
  ],
  [
    'a limit in money, and an agent that reports no cost',
    limit('owner', { costMicros: 9 }, { unpricedAgents: ['codex', 'claude'] }),
    /the agent "claude" reports no cost/,
  ],
  ['another agent reports no cost', limit('owner', { costMicros: 9 }, { unpricedAgents: ['codex'] }), null],
  ['a limit in tokens needs no cost', limit('owner', { tokens: 9 }, { unpricedAgents: ['claude'] }), null],
])('%s', (_, one, message) => {
  const failure = judgeSpending([one], 'claude', NOON);
  if (message === null) return expect(failure).toBeNull();
  expect(failure).toMatchObject({ code: 'over_budget', message: expect.stringMatching(message) });
});

test('a refusal says when it ends, and the setting to change', () => {
  const owner = limit('owner', { tokens: 1 }, { tokens: 1 });
  expect(judgeSpending([limit('conversation', { tokens: 5 }), owner], 'claude', NOON)?.hint).toMatch(
    /00:00 UTC, in 12 hours\. .*limits\.ownerPerDay/,
  );
  expect(judgeSpending([owner], 'claude', NOON + 43_200_000 - 90_000)?.hint).toContain('in 2 minutes');
  expect(overspent([owner], NOON)).toMatchObject({
    code: 'over_budget',
    hint: expect.stringMatching(/raise limits\.ownerPerDay of the settings\.$/),
  });
});

test('a turn may spend what the lowest limit leaves, for each unit', () => {
  expect(leftOf([])).toEqual(NO_BUDGET);
  const limits = [
    limit('conversation', { tokens: 100, costMicros: 50 }, { tokens: 20 }),
    limit('owner', { tokens: 90 }, { tokens: 60 }),
  ];
  expect(leftOf(limits)).toEqual({ tokens: 30, costMicros: 50 });
  expect(lower({ tokens: 5, costMicros: null }, { tokens: null, costMicros: 7 })).toEqual({ tokens: 5, costMicros: 7 });
});

test('only agents that completed turns without a cost are named, not those whose turns were cut off', () => {
  const days = [
    ['codex', ofCompleted(usage(3, 0))],
    ['codex', ofCompleted(usage(3, 0))],
    ['claude', ofCompleted(usage(5, 7))],
    ['claude', withUnknownCost(usage(2, 0))],
    ['mute', ofCompleted(usage(0, 0))],
    // Of an agent that reports its cost otherwise, the sum is nearly right.
    ['gemini', addUsage(ofCompleted(usage(1, 0)), usage(1, 1))],
  ] as const;
  const spent = days.reduce((sum, [agent, used]) => addSpending(sum, agent, used), NO_SPENDING);
  expect(spent).toEqual({ tokens: 15, costMicros: 8, unpricedAgents: ['codex'] });
});
