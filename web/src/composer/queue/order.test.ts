import { expect, test } from 'vitest';
import { moved, queueOf } from './order.ts';

test.each([
  [0, 2, ['b', 'c', 'a']],
  [2, 0, ['c', 'a', 'b']],
  [1, 1, ['a', 'b', 'c']],
  [0, -5, ['a', 'b', 'c']],
  [0, 9, ['b', 'c', 'a']],
  [7, 0, ['a', 'b', 'c']],
])('from place %i to place %i', (from, to, order) => {
  expect(moved(['a', 'b', 'c'], from, to)).toEqual(order);
});

test('every turn is listed, with its change', () => {
  expect(queueOf(['a', 'b'], { b: { drop: true } })).toEqual([{ turn: 'a' }, { turn: 'b', drop: true }]);
});
