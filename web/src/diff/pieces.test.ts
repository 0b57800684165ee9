import { expect, test } from 'vitest';
import { highlight } from '../markdown/highlight.ts';
import { colouredLines, piecesOf, type Tree } from './pieces.ts';

const drawn = (...args: Parameters<typeof piecesOf>) =>
  piecesOf(...args).map(({ text, classes, isChanged, mark }) =>
    [mark?.name ?? text, classes, isChanged].filter(Boolean).join('|'),
  );

test('a line is cut where its colours, its changed words and its marked characters begin and end', () => {
  const coloured = [{ from: 0, to: 5, classes: 'key' }];
  expect(drawn('const a = 1', coloured, [{ from: 3, to: 7 }])).toEqual(['con|key', 'st|key|true', ' a|true', ' = 1']);
  expect(drawn('a\u202eb', [{ from: 0, to: 3, classes: 'key' }], [{ from: 1, to: 2 }])).toEqual([
    'a|key',
    'U+202E · turns text round|key|true',
    'b|key',
  ]);
  expect(drawn('', [], [])).toEqual([]);
});

test('the colours of a text are known for each of its lines', () => {
  const tree = highlight('const a = `one\ntwo`;\n\n// c', 'ts') as unknown as Tree;
  expect(colouredLines(tree)).toEqual([
    [
      { from: 0, to: 5, classes: 'hljs-keyword' },
      { from: 10, to: 14, classes: 'hljs-string' },
    ],
    [{ from: 0, to: 4, classes: 'hljs-string' }],
    [],
    [{ from: 0, to: 4, classes: 'hljs-comment' }],
  ]);
});
