import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addUsage, NO_USAGE, type Usage } from './usage.ts';

const amount = fc.nat(1_000_000);
const usage: fc.Arbitrary<Usage> = fc.record({
  inputTokens: amount,
  outputTokens: amount,
  cacheReadTokens: amount,
  cacheWriteTokens: amount,
  costMicros: amount,
  modelCalls: amount,
});

test('sums do not depend on the order, and nothing added changes nothing', () => {
  fc.assert(
    fc.property(usage, usage, usage, (a, b, c) => {
      expect(addUsage(a, NO_USAGE)).toEqual(a);
      expect(addUsage(a, {})).toEqual(a);
      expect(addUsage(a, b)).toEqual(addUsage(b, a));
      expect(addUsage(addUsage(a, b), c)).toEqual(addUsage(a, addUsage(b, c)));
    }),
  );
});

test('every field is added, and only that one', () => {
  for (const name of Object.keys(NO_USAGE) as (keyof Usage)[])
    expect(addUsage(NO_USAGE, { [name]: 5 })).toEqual({ ...NO_USAGE, [name]: 5 });
});
