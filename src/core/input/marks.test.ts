import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type MarkedAs, marksIn, writtenOut } from './marks.ts';

describe('characters that make a text look like another one are marked', () => {
  test.each([
    ['a line that is reordered', 'echo ok # \u202e; rm -rf ~ #', 'echo ok # [U+202E · turns text round]; rm -rf ~ #'],
    ['an isolate', 'a\u2066b\u2069', 'a[U+2066 · sets the direction]b[U+2069 · ends a direction]'],
    ['an invisible character', 'ab\u200bc', 'ab[U+200B · invisible]c'],
    ['a hidden text of tags', 'ls \u{e0072}\u{e006d}', 'ls [U+E0072 · hidden text][U+E006D · hidden text]'],
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
    ['a lone Cyrillic letter', 'rm \u0430', 'rm [\u0430 · Cyrillic]'],
    ['a letter that looks Latin only among Latin ones', 'admi\u043f', 'admi[\u043f · Cyrillic]'],
    ['a letter of a script that is shaped like Latin', 'rm\u{a4e2}', 'rm[\u{a4e2} · Lisu]'],
    ['a line separator', 'a\u2028b', 'a[U+2028 · ends a line]b'],
    ['a word joiner and a soft hyphen', 'a\u2060b\u00ad', 'a[U+2060 · invisible]b[U+00AD · invisible]'],
    ['a filler', 'a\u3164b', 'a[U+3164 · invisible]b'],
    ['a blank of Braille', 'a\u2800b', 'a[U+2800 · space]b'],
    ['a variant of a letter', 'rm\ufe0f', 'rm[U+FE0F · invisible]'],
    ['a variant of a digit', '1\ufe0f2', '1[U+FE0F · invisible]2'],
    ['hidden bytes of variants', '😀\u{e0100}', '😀[U+E0100 · invisible]'],
    ['a joiner after an emoji that joins nothing', '👩\u200d rm', '👩[U+200D · invisible] rm'],
    ['two joiners', '👩\u200d\u200d👧', '👩[U+200D · invisible][U+200D · invisible]👧'],
    ['a joiner between letters that never join', '\u30b3\u200c\u30fc', '\u30b3[U+200C · invisible]\u30fc'],
    ['tags after a flag that spell no flag', '\u{1f3f4}\u{e0061}', '\u{1f3f4}[U+E0061 · hidden text]'],
    ['marks in excess', `a${'\u0300'.repeat(5)}`, `a${'\u0300'.repeat(4)}[U+0300 · drawn over the text]`],
    ['a stroke through a sign', 'a =\u0338 b', 'a =[U+0338 · drawn over the text] b'],
    ['a private character', 'a\ue000', 'a[U+E000 · unknown character]'],
    ['an escape sequence', 'a\u001b[2K', 'a[U+001B · control character][2K'],
    ['a byte order mark', '\ufeffls', '[U+FEFF · invisible]ls'],
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
    [
      '🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} 1\ufe0f\u20e3 🏳\ufe0f\u200d🌈 👩🏽\u200d🚀 ❤\ufe0f',
      'code',
    ],
    ['Vie\u0323\u0302t, שָׁלוֹם, नमस्ते, ภาษาไทย, 葛\u{e0100}城', 'code'],
    ['cp отчёт.txt документы/', 'code'],
    ['let α = β + 1', 'code'],
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

/** What a person must never be shown as it is. */
const DANGEROUS = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\u200b\u2060-\u2064\ufeff\u{e0000}-\u{e0fff}\u3164\u00ad]/u;
const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom(
      ...'a1 -\u202e\u2066\u200b\u200d\u043e\u0440\u0444\ud83d\u{1f600}\ufe0f\uff52\r\u001b\u0301\u{e0061}\u2028',
    ),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
});
const anyKind = fc.constantFrom<MarkedAs>('code', 'words');

test('the marked form has no dangerous character, for any text', () => {
  fc.assert(
    fc.property(anyText, anyKind, (text, as) => {
      expect(writtenOut(text, as).replaceAll(/[\t\n]/g, '')).not.toMatch(DANGEROUS);
    }),
    { numRuns: 2_000 },
  );
});

test('plain ASCII stays as it is', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[\t\n\x20-\x7e]*$/), anyKind, (text, as) => {
      expect(writtenOut(text, as)).toBe(text);
    }),
  );
});

test('the pieces together are the text', () => {
  fc.assert(
    fc.property(anyText, anyKind, (text, as) => {
      const whole = marksIn(text, as).map((piece) => (typeof piece === 'string' ? piece : piece.char));
      expect(whole.join('')).toBe(text);
    }),
  );
});

test('a megabyte of Cyrillic is looked through in one pass', () => {
  const text = 'сор '.repeat(250_000);
  expect(marksIn(`${text}ф`, 'code')).toHaveLength(1);
});
