import { expect, test } from 'vitest';
import { withoutSequences } from './tool-output.ts';

test.each([
  ['colours', '\u001b[32mgreen\u001b[0m', 'green'],
  ['a title and a link', '\u001b]0;title\u0007a\u001b]8;;https://x\u001b\\b', 'ab'],
])('%s of a terminal', (_name, output, text) => {
  expect(withoutSequences(output)).toBe(text);
});
