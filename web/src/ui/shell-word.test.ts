import { expect, test } from 'vitest';
import { shellWord } from './shell-word.ts';

test.each([
  ['notes', 'notes'],
  ['my notes', "'my notes'"],
  ["it's", "'it'\\''s'"],
  ['$(rm -rf .)', "'$(rm -rf .)'"],
])('the word %s in a shell', (key, word) => {
  expect(shellWord(key)).toBe(word);
});
