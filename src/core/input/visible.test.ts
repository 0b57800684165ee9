import { expect, test } from 'vitest';
import { quotedPath } from './visible.ts';

test.each([
  ['a/plain name.txt', 'a/plain name.txt'],
  ['ä/日本.txt', 'ä/日本.txt'],
  ['a\nnew file: b', '"a\\nnew file: b"'],
  ['say "x"', '"say \\"x\\""'],
  ['a\\b', '"a\\\\b"'],
  ['\u0007\b\t\v\f\r\u001b[2J\u007f', '"\\a\\b\\t\\v\\f\\r\\033[2J\\177"'],
  ['c1 \u009b31m', '"c1 \\302\\23331m"'],
  ['txt.\u202eexe', '"txt.\\342\\200\\256exe"'],
  ['line\u2028end', '"line\\342\\200\\250end"'],
])('the name %j is printed as %s', (path, quoted) => {
  expect(quotedPath(path)).toBe(quoted);
});
