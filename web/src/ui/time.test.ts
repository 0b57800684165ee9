import { expect, test } from 'vitest';
import { duration } from './time.tsx';

test.each([
  [41.4, '41 ms'],
  [140, '0.1 s'],
  [9_940, '9.9 s'],
  [9_960, '10 s'],
  [59_400, '59 s'],
  [59_600, '1 min 0 s'],
  [119_800, '2 min 0 s'],
  [185_000, '3 min 5 s'],
])('%i ms', (ms, shown) => {
  expect(duration(ms)).toBe(shown);
});
