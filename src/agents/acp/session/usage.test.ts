import { expect, test } from 'vitest';
import { quirksOf } from '../known/known.ts';
import { CostMeter, TokenMeter } from './usage.ts';

const cost = (amount: number, size = 1_000) => ({
  sessionUpdate: 'usage_update',
  used: 1,
  size,
  cost: { amount, currency: 'USD' },
});

const added = (meter: CostMeter, amount: number) => {
  meter.read(cost(amount));
  return meter.take();
};

test('the cost of a turn is computed from a running total, also after a restart', () => {
  const meter = new CostMeter(null, () => {});
  expect([0.05, 0.08, 0.08].map((amount) => added(meter, amount))).toEqual([
    { costMicros: 50_000 },
    { costMicros: 30_000 },
    null,
  ]);
  expect(added(new CostMeter(meter.memo, () => {}), 0.1)).toEqual({ costMicros: 20_000 });
  // A lower total has started again.
  expect(added(new CostMeter(meter.memo, () => {}), 0.01)).toEqual({ costMicros: 10_000 });
});

test('a cost between turns is added to the next one; a cost of earlier turns is not', () => {
  const meter = new CostMeter(null, () => {});
  meter.read(cost(0.5), true);
  expect(meter.take()).toBeNull();
  for (const amount of [0.51, 0.53]) meter.read(cost(amount));
  expect(meter.take()).toEqual({ costMicros: 30_000 });
});

test('the window is reported when it changes', () => {
  const seen: number[] = [];
  const meter = new CostMeter(null, (tokens) => seen.push(tokens));
  for (const size of [100, 100, 200]) meter.read(cost(0.1, size));
  expect(seen).toEqual([100, 200]);
  meter.take();
  meter.read({ sessionUpdate: 'usage_update', used: 1, size: 200 });
  expect(meter.take()).toBeNull();
  expect(added(new CostMeter('no number', () => {}), 0.1)).toEqual({ costMicros: 100_000 });
});

const answer = (inputTokens: number, outputTokens: number) => ({
  stopReason: 'end_turn',
  usage: { inputTokens, outputTokens, cachedReadTokens: 1, totalTokens: inputTokens + outputTokens + 1 },
});
const tokens = (inputTokens: number, outputTokens: number, cacheReadTokens: number) => ({
  inputTokens,
  outputTokens,
  cacheReadTokens,
  cacheWriteTokens: 0,
});

test('tokens are read from the answer to each prompt', () => {
  const meter = new TokenMeter({});
  expect(meter.read(answer(3, 2))).toEqual(tokens(3, 2, 1));
  expect(meter.read(answer(5, 2))).toEqual(tokens(5, 2, 1));
  expect(meter.read({ stopReason: 'end_turn' })).toBeNull();
});

test('if an agent reports a running total of tokens, the difference is used', () => {
  const meter = new TokenMeter(quirksOf('Copilot', null));
  const said = [answer(10_191, 7), answer(20_426, 14), answer(900, 3)].map((one) => meter.read(one));
  // A lower number was no total.
  expect(said).toEqual([tokens(10_191, 7, 1), tokens(10_235, 7, 0), tokens(900, 3, 1)]);
});
