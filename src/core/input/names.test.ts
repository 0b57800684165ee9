import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { text } from '../../../test/values/arbitrary.ts';
import { faultOf } from '../../../test/values/thrown.ts';
import { asTitle, checkKey, checkName } from './names.ts';

describe('a name', () => {
  test.each(['notes', 'ticket 4711', 'Gespräch', '会話', '😀', 'x'.repeat(512)])('may be %s', (name) => {
    expect(checkName(name, 'key')).toBe(name);
  });

  test.each([
    [7, /^A key must be a non-empty text, not 7\.$/],
    ['', /^A key must be a non-empty text/],
    [' \t', /^A key must be a non-empty text/],
    ['x'.repeat(513), /^A key can have at most 512 characters\.$/],
    ['a\u0000b', /^A key must not contain control characters\.$/],
    ['a\nb', /control characters/],
    ['a\u001b[31mb', /control characters/],
    ['a\u009b31mb', /control characters/],
    ['a\ud800', /^The key contains an unpaired surrogate, U\+D800 at index 1\.$/],
  ])('that is wrong is refused: %#', (name, message) => {
    const fault = faultOf(() => checkName(name, 'key'));
    expect(fault?.code).toBe('invalid');
    expect(fault?.message).toMatch(message);
  });
});

describe('a key', () => {
  test.each(['notes', 'a.b', '...', '..a', '%2e', 'Gespräch', 'نمی‌خواهم', '👩🏽‍🚀', '❤️', '한글'])(
    'may be %s',
    (key) => {
      expect(checkKey(key, 'key')).toBe(key);
    },
  );

  test.each([
    ['.', /^A key must not be "\."\.$/],
    ['..', /^A key must not be "\.\."\.$/],
    ['a\u200bb', /^A key must not contain U\+200B\.$/],
    ['\u202eseton', /^A key must not contain U\+202E\.$/],
    ['a\u{e0041}', /^A key must not contain U\+E0041\.$/],
    ['\u3164', /^A key must not contain U\+3164\.$/],
    ['Gespra\u0308ch', /^A key must not be in decomposed form\.$/],
    ['a\nb', /control characters/],
    [' ', /non-empty/],
  ])('that is wrong, or looks like another, is refused: %#', (key, message) => {
    const fault = faultOf(() => checkKey(key, 'key'));
    expect(fault?.code).toBe('invalid');
    expect(fault?.message).toMatch(message);
  });
});

test('its error message is a proper sentence', () => {
  for (const fault of ['', '\u0007x', 'x'.repeat(513)].map((name) => faultOf(() => checkName(name, 'agent id'))))
    expect(fault?.message).toMatch(/^An agent id /);
});

describe('a title that nobody has chosen', () => {
  test('is one line without control characters, and cut between characters', () => {
    expect(asTitle(' a\r\n\tb\u0007c\u2028d ')).toBe('a b c d');
    expect(asTitle('\u202ea\u200bb\u{e0041} ❤️')).toBe('ab ❤️');
    expect(asTitle('abcdef', 4)).toBe('abc…');
    expect(asTitle('ab 😀def', 5)).toBe('ab…');
    expect(asTitle('\u0000\n')).toBe('');
  });

  test('is made from the beginning of the text, however long that is', () => {
    const [unseen, half] = ['\u200b'.repeat(19_999), '😀'];
    expect(asTitle(`${unseen}a${'b'.repeat(1_000_000)}`)).toBe('a');
    expect(asTitle(`${unseen}${half}`)).toBe('');
  });

  test('is a name that may be chosen, whatever it was made of', () => {
    fc.assert(
      fc.property(fc.array(text), fc.nat(600), (texts, fill) => {
        const title = asTitle(texts.join('x'.repeat(fill)));
        if (title !== '') expect(checkName(title, 'title')).toBe(title);
      }),
      { numRuns: 1_000 },
    );
  });
});

test('a title loses whole terminal sequences, not only the character that begins them', () => {
  const hostile = 'red\u001b[31m title\u001b]0;pwned\u0007 link\u001b]8;;http://evil\u001b\\x c1\u009b2J end';
  expect(asTitle(hostile)).toBe('red title linkx c1 end');
});
