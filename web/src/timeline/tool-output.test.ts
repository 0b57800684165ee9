import { expect, test } from 'vitest';
import { changeOf, piecesOf } from './tool-output.ts';

test('a change of a file has its lines with signs and numbers', () => {
  const pieces = piecesOf('[diff src/a.ts, line 12]\n-old\n+new\n+more');
  expect(pieces).toEqual([
    {
      ...{ kind: 'diff', path: 'src/a.ts' },
      lines: [
        { sign: '-', text: 'old', number: 12 },
        { sign: '+', text: 'new', number: 12 },
        { sign: '+', text: 'more', number: 13 },
      ],
    },
  ]);
  expect(changeOf(pieces)).toEqual({ added: 2, removed: 1 });
});

test('printed text and changes stay in their order', () => {
  const pieces = piecesOf('before\n[diff a, line 1]\n+x\nafter\n[diff <b>, line 2]\n-y');
  expect(pieces.map((piece) => (piece.kind === 'diff' ? piece.path : piece.text))).toEqual([
    'before',
    'a',
    'after',
    '<b>',
  ]);
});

test.each([
  ['colours', '\u001b[32mgreen\u001b[0m', 'green'],
  ['a title and a link', '\u001b]0;title\u0007a\u001b]8;;https://x\u001b\\b', 'ab'],
  ['what only looks like a change', '[diff of nothing]', '[diff of nothing]'],
])('%s of a terminal', (_name, output, text) => {
  expect(piecesOf(output)).toEqual([{ kind: 'text', text }]);
});

test('nothing is shown if nothing was printed', () => {
  expect(piecesOf('\n\n')).toEqual([]);
  expect(changeOf([])).toBeNull();
});
