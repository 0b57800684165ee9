import { expect, test } from 'vitest';
import { age, duration } from './time.tsx';

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

const NOW = new Date(2026, 10, 19, 12, 0).getTime();

test.each([
  [new Date(2026, 10, 19, 11, 59, 30), 'now'],
  [new Date(2026, 10, 19, 11, 54), '6 min'],
  [new Date(2026, 10, 19, 9, 0), '3 h'],
  [new Date(2026, 10, 17, 9, 0), 'Tue'],
  [new Date(2026, 10, 12, 9, 0), '12 Nov'],
  [new Date(2025, 10, 12, 9, 0), '12 Nov 2025'],
])('%s was %s', (at, shown) => {
  expect(age(at.getTime(), NOW)).toBe(shown);
});
