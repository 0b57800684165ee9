import fc from 'fast-check';
import { expect, test } from 'vitest';
import { faultOf } from '../../../test/values/thrown.ts';
import { checkAfter, checkLimit, checkText, shown } from './arguments.ts';

test('a limit and a place to go on from are whole numbers, or left out', () => {
  expect([checkLimit(undefined, 50), checkLimit(7, 50), checkAfter(undefined), checkAfter(3)]).toEqual([50, 7, 0, 3]);
  for (const value of [Number.NaN, 1e300, 0.5, -1, '5', null, {}]) {
    expect(faultOf(() => checkLimit(value, 50))?.code, String(value)).toBe('invalid');
    expect(faultOf(() => checkAfter(value))?.code, String(value)).toBe('invalid');
  }
  expect(faultOf(() => checkLimit(0, 50))?.message).toContain('from 1 to');
});

test('an id is some text of whole characters, and not too long', () => {
  expect(checkText('r-1', 'request id')).toBe('r-1');
  for (const value of ['', '  ', 5, null, {}, 'q\ud800', 'x'.repeat(513)]) {
    expect(faultOf(() => checkText(value, 'request id'))?.message).toContain('request id');
  }
});

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
