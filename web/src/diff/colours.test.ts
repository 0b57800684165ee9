import { expect, test } from 'vitest';
import { highlight } from '../markdown/highlight.ts';
import { colouredLines, type Tree } from './colours.ts';

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
