import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { escapedChar, isInvisible, jsonLine } from '../../core/input/visible.ts';
import { ControlStripper, cells, codeText, cutTo, isForbidden, oneLine, stripControls } from './terminal-text.ts';

/** Marks and overrides of the direction, separators, a byte order mark, tags, fillers, and what joins and hides nothing here. */
const UNSEEN = [
  ...['\u200e', '\u200f', '\u061c', '\u202a', '\u202e', '\u2066', '\u2069', '\u2028', '\u2029', '\ufeff', '\u00ad'],
  ...['\u180e', '\u200b', '\u2060', '\u3164', '\ufff9', '\u{e0001}', '\u{e0041}', '\u{e007f}', '\u034f', '\u{1d173}'],
];

/** Strings with many characters to remove: complete, broken and nested escape sequences in ordinary text. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '\u001b',
        '\u001b[',
        '\u001b]',
        '\u001b]0;',
        '\u001bP',
        '\u001b\\',
        '\u0007',
        '\u009b',
        '\u009d',
        '\u009c',
      ),
      fc.constantFrom(
        '31m',
        '2J',
        '0;title',
        ';',
        '?25l',
        ' q',
        '(B',
        '\n',
        '\t',
        '\r',
        '\b',
        '\u007f',
        '\u202e',
        '\u2066',
        '\u0000',
      ),
      fc.constantFrom(...UNSEEN, '\u200d', '\ufe0f'),
      fc.constantFrom('a', 'Z', 'word', 'é', '中', '😀', '\ud83d', '\ude00', '1', 'ن'),
      fc.string({ unit: 'binary' }),
    ),
    { maxLength: 30 },
  )
  .map((pieces) => pieces.join(''));

function inChunks(text: string, cuts: readonly number[]): string {
  const stripper = new ControlStripper();
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  let from = 0;
  let result = '';
  for (const to of [...places, text.length]) {
    result += stripper.push(text.slice(from, to));
    from = to;
  }
  return result + stripper.end();
}

describe('text for a terminal', () => {
  test('never has a character that controls a terminal, for any input', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const clean = stripControls(text);
        const chars = [...clean];
        expect(chars.filter((char) => isForbidden(char.charCodeAt(0)))).toEqual([]);
        expect(chars.filter((char, i) => isInvisible(char, chars[i - 1] ?? ''))).toEqual([]);
      }),
      { numRuns: 3_000 },
    );
  });

  test.each(UNSEEN)('shows an invisible character as its code point: %#', (char) => {
    expect(stripControls(`rm a${char}b`)).toBe(`rm a${escapedChar(char)}b`);
    expect(escapedChar(char)).toMatch(/^\\u\{[0-9a-f]+\}$/);
  });

  test.each([
    ['an emoji of several', '👨‍👩‍👧 👩🏽‍🚀 🏳️‍🌈 ❤️ 1️⃣'],
    ['Persian and Sinhala', 'نمی‌خواهم ක්‍ෂ'],
    ['a variant of a Chinese character', '葛\u{e0100}城'],
  ])('keeps characters that a script needs: %s', (_, text) => {
    expect(stripControls(text)).toBe(text);
    expect(inChunks(text, [1, 2, 3, 4, 5, 6, 7])).toBe(text);
  });

  test('does not depend on how it was split into chunks', () => {
    fc.assert(
      fc.property(hostile, fc.array(fc.nat(), { maxLength: 8 }), (text, cuts) => {
        expect(inChunks(text, cuts)).toBe(stripControls(text));
      }),
      { numRuns: 3_000 },
    );
  });

  test('never has an unpaired surrogate, also when a chunk ends within an emoji', () => {
    const stripper = new ControlStripper();
    expect(stripper.push('a\ud83d')).toBe('a');
    expect(stripper.push('\ude00b')).toBe('😀b');
  });

  test('keeps what people write', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[\t\n\u0020-\u007e\u00a0-\u00ac\u00ae-\u02ff\u0400-\u05ff\u2070-\u2fff\u4e00-\ud7ff]*$/),
        (text) => {
          expect(stripControls(text)).toBe(text);
        },
      ),
    );
    expect(stripControls('日本語 😀 עברית line\n\ttab')).toBe('日本語 😀 עברית line\n\ttab');
  });

  test.each([
    ['a colour', 'a\u001b[31mred\u001b[0mb', 'aredb'],
    ['a title', 'a\u001b]0;evil\u0007b', 'ab'],
    ['a link', 'a\u001b]8;;http://x\u001b\\text\u001b]8;;\u001b\\b', 'atextb'],
    ['a clipboard write', '\u001b]52;c;ZXZpbA==\u0007ok', 'ok'],
    ['device control', 'a\u001bPq#0;2;0;0;0\u001b\\b', 'ab'],
    ['an 8-bit sequence', 'a\u009b2Jb', 'ab'],
    ['an 8-bit title', 'a\u009d0;evil\u009cb', 'ab'],
    ['a character set', 'a\u001b(Bb', 'ab'],
    ['a reset', 'a\u001bcb', 'ab'],
    ['a sequence within a title', 'a\u001b]0;x\u001b[31mb', 'ab'],
    ['an overwritten line', 'safe\r\u001b[Kevil', 'safeevil'],
    ['a Windows line end', 'a\r\nb', 'a\nb'],
    ['reordered text', 'a\u202egnp.exe\u202c', 'a\\u{202e}gnp.exe\\u{202c}'],
    ['backspaces', 'ab\b\bc', 'abc'],
  ])('is without %s', (_, text, clean) => {
    expect(stripControls(text)).toBe(clean);
  });

  test('loses no more than a line to a sequence that never ends', () => {
    expect(stripControls('a\u001b]0;never closed\nthe rest')).toBe('a\nthe rest');
    expect(stripControls('a\u001b[12\nthe rest')).toBe('a\nthe rest');
  });

  test('removes a sequence wherever it is split', () => {
    const stripper = new ControlStripper();
    const chunks = [...'a\u001b]0;t\u001b\\b\u001b[1;31mc'];
    expect(chunks.map((chunk) => stripper.push(chunk)).join('')).toBe('abc');
  });

  test('fits in a list on one line', () => {
    expect(oneLine(' a\n\n b\u001b[2J\tc ')).toBe('a b c');
    expect(oneLine(`begin ${'x'.repeat(20_000_000)} end`)).toMatch(
      /^begin x{5000,} \[… 19\d+ characters left out …\] x+ end$/,
    );
  });
});

test('a JSON value is unchanged after it was one line without a character that controls a terminal', () => {
  const text = fc.string({ unit: 'binary' });
  const steering = fc.constantFrom(
    ...UNSEEN,
    '\u001b[2J',
    '\u009b2J',
    '\u007f',
    '\u202e',
    '\u2066',
    '\u2028',
    '\u0000',
    '\n',
    '\t',
  );
  const value = fc.dictionary(text, fc.array(fc.oneof(text, steering, fc.integer())));
  fc.assert(
    fc.property(value, (given) => {
      const line = jsonLine(given);
      expect([...line].filter((char) => isForbidden(char.charCodeAt(0)) || char === '\n' || char === '\t')).toEqual([]);
      expect(line).not.toMatch(/[\p{Bidi_Control}\p{Zl}\p{Zp}\ufeff\u{e0000}-\u{e007f}]/u);
      expect(JSON.parse(line)).toEqual(JSON.parse(JSON.stringify(given)));
    }),
  );
  expect(jsonLine({ a: '\u009b\u202e' })).toBe('{"a":"\\u009b\\u202e"}');
});

test('a text is cut by the columns that a terminal needs for it, and no character is cut in two', () => {
  expect(cutTo('short', 5)).toBe('short');
  expect(cutTo('longer', 5)).toBe('long…');
  expect(cutTo('日本語', 5)).toBe('日本…');
  expect(cutTo('日本語', 6)).toBe('日本語');
  expect(cutTo('👩‍👩‍👧 family', 4)).toBe('👩‍👩‍👧 …');
  expect(cutTo('anything', 0)).toBe('');
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.nat(40), (text, columns) => {
      expect(cells(cutTo(text, columns))).toBeLessThanOrEqual(Math.max(columns, 0));
    }),
  );
});

test('what looks like another letter is written out, in code and in one line', () => {
  expect(codeText('curl get.harb\u043erbank.dev\nls')).toBe('curl get.harb[\u043e · Cyrillic]rbank.dev\nls');
  expect(codeText('echo ok # \u202e; rm -rf ~ #')).toBe('echo ok # [U+202E · turns text round]; rm -rf ~ #');
  expect(oneLine('Fix the p\u0430yment — “now”')).toBe('Fix the p[\u0430 · Cyrillic]yment — “now”');
  expect(oneLine('rm\u00a0-rf', 'code')).toBe('rm[U+00A0 · space]-rf');
});

test('an escape sequence hides nothing of a command: a shell runs what stands in it', () => {
  expect(oneLine('echo \u001b]0; rm -rf ~ ;\u0007', 'code')).toBe(
    'echo [U+001B · control character]]0; rm -rf ~ ;[U+0007 · control character]',
  );
});

test('no line of code has a character that controls a terminal, for any input', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      expect([...oneLine(text, 'code'), ...codeText(text)].filter((char) => isForbidden(char.charCodeAt(0)))).toEqual(
        [],
      );
      expect(codeText(text)).toBe(stripControls(codeText(text)));
    }),
  );
});
