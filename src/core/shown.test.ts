import fc from 'fast-check';
import { expect, test } from 'vitest';
import { shown } from './shown.ts';

test('a value is shown as JSON, and what JSON cannot say by its kind', () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  expect([7, 'a', null, undefined, 1n, circle, () => {}].map(shown)).toEqual([
    '7',
    '"a"',
    'null',
    'nothing',
    'a bigint',
    'a object',
    'a function',
  ]);
});

test('anything at all can be shown, in a few words', () => {
  const anything = fc.anything({
    withBigInt: true,
    withNullPrototype: true,
    withObjectString: true,
    withTypedArray: true,
  });
  fc.assert(
    fc.property(anything, (value) => {
      expect(shown(value).length).toBeLessThanOrEqual(81);
    }),
  );
});
