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

test('what only looks like a change is text', () => {
  expect(piecesOf('[diff of nothing]')).toEqual([{ kind: 'text', text: '[diff of nothing]' }]);
});

test('nothing is shown if nothing was printed', () => {
  expect(piecesOf('\n\n')).toEqual([]);
  expect(changeOf([])).toBeNull();
});
