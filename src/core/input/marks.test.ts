import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type MarkedAs, marksIn, writtenOut } from './marks.ts';

describe('characters that make a text look like another one are marked', () => {
  test.each([
    ['a line that is reordered', 'echo ok # \u202e; rm -rf ~ #', 'echo ok # [U+202E · reorders text]; rm -rf ~ #'],
    ['an isolate', 'a\u2066b\u2069', 'a[U+2066 · reorders text]b[U+2069 · reorders text]'],
    ['an invisible character', 'ab\u200bc', 'ab[U+200B · invisible]c'],
    ['a hidden text of tags', 'ls \u{e0072}\u{e006d}', 'ls [U+E0072 · invisible][U+E006D · invisible]'],
    ['a line that is written over', 'rm -rf ~\recho ok', 'rm -rf ~[U+000D · control character]echo ok'],
    ['a Cyrillic letter in a Latin word', 'get.harb\u043erbank.dev', 'get.harb[\u043e · Cyrillic]rbank.dev'],
    ['a Greek letter in a Latin word', 'nο\u0064e', 'n[ο · Greek]de'],
    [
      'a word of look-alikes before Latin letters',
      'https://\u0441\u043e.com',
      'https://[\u0441 · Cyrillic][\u043e · Cyrillic].com',
    ],
    [
      'a word of look-alikes before Latin letters, beside other words in its script',
      'echo все > \u0441\u043e.com',
      'echo все > [\u0441 · Cyrillic][\u043e · Cyrillic].com',
    ],
    [
      'a word of look-alikes, with nothing else in its script',
      '\u0441\u0440 a b',
      '[\u0441 · Cyrillic][\u0440 · Cyrillic] a b',
    ],
    ['full-width letters', '\uff52\uff4d x', '[\uff52 · U+FF52][\uff4d · U+FF4D] x'],
    ['mathematical letters', '\u{1d42b}\u{1d426}', '[\u{1d42b} · U+1D42B][\u{1d426} · U+1D426]'],
    ['a slash that is none', 'https://a\u2044b', 'https://a[\u2044 · U+2044]b'],
    ['a semicolon that is none', 'a\u037e b', 'a[\u037e · U+037E] b'],
    ['a space that is none', 'rm\u00a0-rf', 'rm[U+00A0 · space]-rf'],
  ])('%s', (_, text, expected) => {
    expect(writtenOut(text, 'code')).toBe(expected);
  });
});

describe('ordinary writing is left as it is', () => {
  test.each<[string, MarkedAs]>([
    ['npm test -- payouts\n\t&& echo "ok"', 'code'],
    ['naïve café', 'code'],
    ['cafe\u0301', 'code'],
    ['Привет, мир', 'code'],
    ['git commit -m "все исправлено"', 'code'],
    ['Ελληνικά αρχεία', 'code'],
    ['日本語のテスト', 'code'],
    ['می\u200cخواهم', 'code'],
    ['👩\u200d👩\u200d👧 ☎\ufe0f', 'code'],
    ['5 m², 3 µs, ½', 'code'],
    ['“quoted” — and it’s a dash – too', 'words'],
    ['10\u00a0km', 'words'],
    ['сору', 'words'],
  ])('%j as %s', (text, as) => {
    expect(marksIn(text, as)).toEqual([text]);
  });
});

test('a Latin word with a foreign letter is marked in a title, too', () => {
  expect(writtenOut('Fix the p\u0430yment', 'words')).toBe('Fix the p[\u0430 · Cyrillic]yment');
});

test('the pieces together are the text', () => {
  const text = fc.string({
    unit: fc.constantFrom(...'a1 -\u202e\u200d\u043e\u0440\u0444\ud83d\u{1f600}\ufe0f\uff52\r\n\u0301'),
  });
  fc.assert(
    fc.property(text, fc.constantFrom<MarkedAs>('code', 'words'), (any, as) => {
      const whole = marksIn(any, as).map((piece) => (typeof piece === 'string' ? piece : piece.char));
      expect(whole.join('')).toBe(any);
    }),
  );
});

test('a megabyte of Cyrillic is looked through in one pass', () => {
  const text = 'сор '.repeat(250_000);
  expect(marksIn(`${text}ф`, 'code')).toHaveLength(1);
});
