import { expect, test } from 'vitest';
import { lastLineOf } from './task-gate.ts';

test.each([
  ['nothing was written', '', ''],
  ['only empty lines', '\n \n', ''],
  ['the last line that is not empty', 'one\n  2 tests failed \r\n\n', '2 tests failed'],
  ['a long line is cut', `x\n${'y'.repeat(300)}`, 'y'.repeat(200)],
  ['no unpaired surrogate is left', `${'y'.repeat(199)}😀`, `${'y'.repeat(199)}\uFFFD`],
])('%s', (_name, output, line) => {
  expect(lastLineOf({ output })).toBe(line);
});
