import { expect, test } from 'vitest';
import { cellsOf, stretchesOf } from './strip.ts';

const text = (stretches: { share: string; from: number; to: number }[]) =>
  stretches.map(({ share, from, to }) => `${share} ${from}-${to}`).join(', ');
const counts = (carried: number, condensed: number, dropped: number, rung = 'resume') =>
  ({ carried, condensed, dropped, rung }) as Parameters<typeof stretchesOf>[1];
const told = (from: number, to: number) => ({ from, to, count: to - from + 1 });

test.each([
  ['resumed with all', 11, counts(10, 0, 0), null, 'carried 1-10'],
  [
    'a new session that was told the last turns',
    11,
    counts(7, 0, 3, 'transcript'),
    told(4, 10),
    'dropped 1-3, told 4-10',
  ],
  ['resumed, and told the turns of another agent', 11, counts(10, 0, 0), told(8, 10), 'carried 1-7, told 8-10'],
  ['condensed by its agent', 11, counts(4, 6, 0), null, 'condensed 1-6, carried 7-10'],
  ['all three', 11, counts(5, 3, 2), told(9, 10), 'dropped 1-2, condensed 3-5, carried 6-8, told 9-10'],
  ['fresh', 4, counts(0, 0, 3, 'fresh'), null, 'dropped 1-3'],
  ['before the first turn', 1, counts(0, 0, 0), null, ''],
])('%s', (_name, n, has, delivered, expected) => {
  expect(text(stretchesOf(n, has, delivered))).toBe(expected);
});

test('a long conversation fits into the strip, and a short stretch stays visible', () => {
  const cells = cellsOf(stretchesOf(10_001, counts(9_998, 0, 2), null), 60);
  expect(cells.length).toBeLessThanOrEqual(62);
  expect(cells[0]).toEqual({ share: 'dropped', from: 1, to: 2 });
  expect(cells.at(-1)?.to).toBe(10_000);
});
