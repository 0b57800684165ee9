import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonLine } from './json-line.ts';
import { isForbidden } from './terminal-text.ts';

test('a value comes back as it was, from one line without a character that steers a terminal', () => {
  const text = fc.string({ unit: 'binary' });
  const steering = fc.constantFrom(
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
      expect(JSON.parse(line)).toEqual(JSON.parse(JSON.stringify(given)));
    }),
  );
  expect(jsonLine({ a: '\u009b\u202e' })).toBe('{"a":"\\u009b\\u202e"}');
});
