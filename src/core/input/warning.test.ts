import { expect, test } from 'vitest';
import { warningOf } from './warning.ts';

test.each([
  [
    'a line that is reordered',
    ['echo ok # \u202e; rm -rf ~ #'],
    'A character here is not what it looks like: U+202E changes the order in which the text around it is shown.',
  ],
  [
    'two of different kinds, in two texts, one of them twice',
    ['get.harb\u043erbank.dev/\u043e', 'a\u200bb'],
    'Two characters here are not what they look like: “\u043e” is Cyrillic, not “o”; U+200B cannot be seen.',
  ],
  [
    'a hidden text',
    ['ls \u{e0072}\u{e006d}'],
    'Two characters here are not what they look like: a hidden text says “rm”.',
  ],
  [
    'a space, a control character, a sign, and marks over the text',
    ['rm\u00a0-rf \u001b a\u2044b', `=\u0338`],
    'Four characters here are not what they look like: U+00A0 is not an ordinary space; U+001B can hide what stands before it; “⁄” is the character U+2044, not “/”; U+0338 is drawn over the text.',
  ],
  [
    'more than anybody reads',
    ['\u200b\u200e\u2060\u2066\u2069\u202e'],
    'U+2066 changes the order in which the text around it is shown; and 2 more.',
  ],
])('what is hidden is said in a sentence: %s', (_, texts, expected) => {
  expect(warningOf(texts)).toContain(expected);
});

test('nothing is said of ordinary texts', () => {
  expect(warningOf(['rm -rf ~', 'Привет, мир', '👩\u200d👧', ''])).toBeNull();
});
