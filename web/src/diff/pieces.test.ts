import { expect, test } from 'vitest';
import { piecesOf } from './pieces.ts';

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
