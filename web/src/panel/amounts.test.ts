import type { TurnOutline } from 'throughline/client';
import { expect, test } from 'vitest';
import { NO_USAGE } from '../../../src/core/turn/usage.ts';
import { amountsOf, pointsOf, shownCost } from './amounts.ts';

test('usage that was not reported is unknown, not zero', () => {
  expect(amountsOf(NO_USAGE)).toEqual({ read: null, written: null, cached: null, calls: null, cost: null });
  const usage = { ...NO_USAGE, inputTokens: 5, cacheReadTokens: 20, outputTokens: 2, modelCalls: 1 };
  expect(amountsOf(usage)).toEqual({ read: 25, written: 2, cached: 20, calls: 1, cost: null });
  expect(amountsOf({ ...usage, costMicros: 1500 }).cost).toBe(0.0015);
});

test('a sum of costs says how many turns it lacks', () => {
  expect(shownCost(NO_USAGE)).toBe('–');
  expect(shownCost({ ...NO_USAGE, unknownCosts: 1 })).toBe('1 turn unknown');
  expect(shownCost({ ...NO_USAGE, costMicros: 700_000, unknownCosts: 2 })).toBe('0.70 USD + 2 turns unknown');
});

test('a seam is where another strand of the line begins, and turns without a session are left out', () => {
  const turn = (n: number, sessionId: string | null, rung: TurnOutline['rung'] = 'live') =>
    ({ n, sessionId, usage: NO_USAGE, agent: 'a', rung, given: rung === 'transcript' ? rung : null }) as TurnOutline;
  const turns = [turn(1, 'a'), turn(2, 'a'), turn(3, null, null), turn(4, 'b', 'transcript'), turn(5, 'b')];
  const { n, seams, read } = pointsOf(turns);
  expect(n).toEqual([1, 2, 4, 5]);
  expect(seams).toEqual([4]);
  expect(read).toEqual([null, null, null, null]);
});
