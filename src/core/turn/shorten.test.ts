import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { text } from '../../../test/values/arbitrary.ts';
import { byteLength, LongText, leftOutMark, SHORTEST, shorten, UNSPACED_MARK } from './shorten.ts';

describe('the length in bytes', () => {
  test('is that of an encoder, also for an unpaired surrogate', () => {
    fc.assert(
      fc.property(text, (value) => {
        expect(byteLength(value)).toBe(Buffer.byteLength(value));
      }),
      { numRuns: 2_000 },
    );
  });

  test.each(['\ud83d', '\ude00', '\ude00\ud83d', '\ud83d\ud83d\ude00', 'a\ud83d', '😀', 'é☃'])('of %j', (value) => {
    expect(byteLength(value)).toBe(Buffer.byteLength(value));
  });
});

describe('a text that is too long', () => {
  test('keeps its beginning and its end, and says how much is left out', () => {
    const short = shorten(`begin ${'x'.repeat(8_000_000)} end`, 1_000);
    expect(short).toMatch(/^begin x+\n\[… 79990\d\d characters left out …\]\nx+ end$/);
    expect(byteLength(short)).toBeLessThanOrEqual(1_000);
    expect(byteLength(short)).toBeGreaterThan(980);
  });

  test('never gets longer than it may, loses nothing without counting it, and no character is cut in two', () => {
    const long = fc.array(fc.constantFrom('a', 'é', '☃', '😀', '\n'), { maxLength: 400 }).map((all) => all.join(''));
    fc.assert(
      fc.property(long, fc.integer({ min: SHORTEST, max: 600 }), (value, bytes) => {
        const short = shorten(value, bytes);
        if (byteLength(value) <= bytes) {
          expect(short).toBe(value);
          return;
        }
        expect(byteLength(short)).toBeLessThanOrEqual(bytes);
        expect(Buffer.from(short).toString()).toBe(short);
        const [head = '', tail = ''] = short.split(/\n\[… \d+ characters left out …\]\n/);
        expect(value.startsWith(head) && value.endsWith(tail)).toBe(true);
        expect(short).toContain(leftOutMark(value.length - head.length - tail.length));
      }),
      { numRuns: 1_000 },
    );
  });

  test('may come in pieces: it is the same as in one piece, and no more of it is kept than that needs', () => {
    const pieces = fc.array(fc.constantFrom('a', 'é', '☃', '😀'.repeat(99), '\n', 'x'.repeat(250)), { maxLength: 60 });
    fc.assert(
      fc.property(pieces, fc.integer({ min: SHORTEST, max: 600 }), (some, bytes) => {
        const text = new LongText(bytes);
        for (const piece of some) text.add(piece);
        expect(text.shortened).toBe(shorten(some.join(''), bytes));
      }),
      { numRuns: 1_000 },
    );
    const text = new LongText(1_000);
    for (let i = 0; i < 5_000; i += 1) text.add('x'.repeat(1_600));
    expect(text.shortened).toBe(shorten('x'.repeat(8_000_000), 1_000));
  });

  test('has a mark that is found again when white space was removed', () => {
    expect(leftOutMark(12).replace(/\s/g, '')).toMatch(UNSPACED_MARK);
  });
});
