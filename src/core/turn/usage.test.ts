import fc from 'fast-check';
import { expect, test } from 'vitest';
import { faultOf } from '../../../test/values/thrown.ts';
import { addUsage, NO_USAGE, OPTIONAL_COUNTS, parseUsage, type Usage } from './usage.ts';

const amount = fc.nat(1_000_000);
const sums = fc.record({
  inputTokens: amount,
  outputTokens: amount,
  cacheReadTokens: amount,
  cacheWriteTokens: amount,
  costMicros: amount,
  modelCalls: amount,
}) as fc.Arbitrary<Usage>;
const counts = fc.record(
  { unknownCosts: fc.integer({ min: 1, max: 9 }), unreportedCosts: fc.integer({ min: 1, max: 9 }) },
  { requiredKeys: [] },
);
const usage = fc.tuple(sums, counts).map(([sum, count]): Usage => ({ ...sum, ...count }));

test('sums do not depend on the order, and adding nothing changes nothing', () => {
  fc.assert(
    fc.property(usage, usage, usage, (a, b, c) => {
      expect(addUsage(a, NO_USAGE)).toEqual(a);
      expect(addUsage(a, {})).toEqual(a);
      expect(addUsage(a, b)).toEqual(addUsage(b, a));
      expect(addUsage(addUsage(a, b), c)).toEqual(addUsage(a, addUsage(b, c)));
    }),
  );
});

test('each field is added only to the same field', () => {
  for (const name of [...Object.keys(NO_USAGE), ...OPTIONAL_COUNTS] as (keyof Usage)[])
    expect(addUsage(NO_USAGE, { [name]: 5 })).toEqual({ ...NO_USAGE, [name]: 5 });
});

test('usage with some or all fields is accepted unchanged', () => {
  for (const said of [{}, { inputTokens: 0 }, { ...NO_USAGE, modelCalls: 1 }]) expect(parseUsage(said)).toEqual(said);
});

test.each([
  [7, '"usage" must be an object, not 7.'],
  [{ inputTokens: 'x' }, '"usage.inputTokens" must be a whole number, 0 or more, not "x".'],
  [{ inputTokens: Number.NaN }, /^"usage\.inputTokens" must be a whole number/],
  [{ outputTokens: Number.POSITIVE_INFINITY }, /^"usage\.outputTokens" must be a whole number/],
  [{ outputTokens: 1.5 }, /not 1\.5\.$/],
  [{ costMicros: -1 }, /not -1\.$/],
  // Only we can say how much is unknown.
  [{ unknownCosts: 1 }, /^"usage\.unknownCosts" is not known/],
  [{ input_tokens: 1 }, /^"usage\.input_tokens" is not known; known are inputTokens, /],
  [JSON.parse('{"__proto__": 1}'), /^"usage\.__proto__" is not known/],
])('usage that cannot be added is refused: %#', (said, message) => {
  const fault = faultOf(() => parseUsage(said));
  expect(fault?.code).toBe('invalid');
  expect(fault?.message).toMatch(message);
});
