import { expect, test } from 'vitest';
import { bestFiles, fitOf, isLookedInto, MOST_PATHS } from './files.ts';

test.each([
  ['src/index.ts', 'ind', 0],
  ['src/index.ts', 'DEX', 1],
  ['src/core/', 'co', 0],
  ['src/core/', 'core/', 0],
  ['src/core/turn.ts', 'core', 2],
  ['src/core/turn.ts', 'core/t', 2],
  ['src/core/turn.ts', '', 0],
  ['src/core/turn.ts', 'nope', null],
])('%s matches %j: %j', (path, match, rank) => {
  expect(fitOf(path, match)).toBe(rank);
});

test('names that begin with the text come first, then files in fewer folders', () => {
  const all = ['a/b/notes.md', 'my-notes.md', 'notes/x.md', 'notes/', 'Notes.txt', 'other'];
  expect(bestFiles(all, 'notes', true)).toEqual({
    paths: ['Notes.txt', 'notes/', 'a/b/notes.md', 'my-notes.md', 'notes/x.md'],
    more: false,
  });
});

test('the list says when there are more files, or when folders were not read', () => {
  const many = Array.from({ length: MOST_PATHS + 1 }, (_, n) => `file-${n}`);
  expect(bestFiles(many, 'file', true)).toMatchObject({ paths: { length: MOST_PATHS }, more: true });
  expect(bestFiles(['a'], '', false)).toEqual({ paths: ['a'], more: true });
});

test('folders of tools are read only when they are named', () => {
  expect(isLookedInto('src/', '')).toBe(true);
  expect(isLookedInto('a/node_modules/', 'react')).toBe(false);
  expect(isLookedInto('a/node_modules/', 'node_modules/react')).toBe(true);
  expect(isLookedInto('.git/', 'x')).toBe(false);
});
