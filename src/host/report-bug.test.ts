import { expect, test } from 'vitest';
import { bugReport } from './report-bug.ts';

const error = new Error('said \u001b[2J\u009b1m\u0007\nand more');

test('a fault is one line, in which nothing can steer a terminal', () => {
  expect(bugReport(error, 'claiming', false)).toBe(
    'throughline: a fault of this program while claiming: Error: said [2J1m and more\n',
  );
});

test('the whole of it is for those who look for it', () => {
  const report = bugReport(error, 'claiming', true);
  expect(report).toContain('\nand more\n    at ');
  expect(report).not.toMatch(/[^\P{Cc}\n]/u);
});

test('anything may be thrown', () => {
  for (const thrown of [undefined, null, 7, 'text', {}]) expect(bugReport(thrown, 'x', true)).toMatch(/while x: .+\n$/);
});
