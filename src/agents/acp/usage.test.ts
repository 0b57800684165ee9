import { expect, test } from 'vitest';
import { CostMeter, tokensOf } from './usage.ts';

const cost = (amount: number, size = 1_000) => ({
  sessionUpdate: 'usage_update',
  used: 1,
  size,
  cost: { amount, currency: 'USD' },
});

test('a running total becomes what each turn added, also after a restart', () => {
  const meter = new CostMeter(null, () => {});
  expect([0.05, 0.08, 0.08].map((amount) => meter.read(cost(amount)))).toEqual([
    { costMicros: 50_000 },
    { costMicros: 30_000 },
    null,
  ]);
  expect(new CostMeter(meter.memo, () => {}).read(cost(0.1))).toEqual({ costMicros: 20_000 });
  // One that begins anew has fallen.
  expect(new CostMeter(meter.memo, () => {}).read(cost(0.01))).toEqual({ costMicros: 10_000 });
});

test('the window is told when it is another one', () => {
  const seen: number[] = [];
  const meter = new CostMeter(null, (tokens) => seen.push(tokens));
  for (const size of [100, 100, 200]) meter.read(cost(0.1, size));
  expect(seen).toEqual([100, 200]);
  expect(meter.read({ sessionUpdate: 'usage_update', used: 1, size: 200 })).toBeNull();
  expect(new CostMeter('no number', () => {}).read(cost(0.1))).toEqual({ costMicros: 100_000 });
});

test('tokens are taken where an agent tells them', () => {
  const usage = { inputTokens: 3, outputTokens: 2, cachedReadTokens: 1, totalTokens: 6 };
  expect(tokensOf({ stopReason: 'end_turn', usage })).toEqual({
    inputTokens: 3,
    outputTokens: 2,
    cacheReadTokens: 1,
    cacheWriteTokens: 0,
  });
  expect(tokensOf({ stopReason: 'end_turn' })).toBeNull();
});
