import { expect, test } from 'vitest';
import { bucketsOf, lineOf, niceTop } from './plot-line.ts';

test('few values are drawn unchanged; of many, the largest of each group is drawn', () => {
  expect(bucketsOf([1, null, 3], 5)).toEqual([1, null, 3]);
  expect(bucketsOf([1, 9, null, null, 2, 3], 3)).toEqual([9, null, 3]);
  expect(
    bucketsOf(
      Array.from({ length: 10_000 }, (_, n) => n),
      240,
    ),
  ).toHaveLength(240);
});

test('the line has a gap where nothing is known', () => {
  const at = (value: number) => value;
  expect(lineOf([1, 2, null, 4], at, at)).toBe('M0.0 1.0h0.01L1.0 2.0M3.0 4.0h0.01');
  expect(lineOf([null], at, at)).toBe('');
});

test.each([
  [0, 1],
  [0.00031, 0.0005],
  [7, 10],
  [1_200, 2_000],
  [5_000, 5_000],
])('a scale for %d ends at %d', (largest, top) => {
  expect(niceTop(largest)).toBeCloseTo(top, 10);
});
