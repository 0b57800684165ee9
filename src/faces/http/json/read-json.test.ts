import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ThroughlineError } from '../../../core/errors.ts';
import { type JsonBounds, JsonReader } from './read-json.ts';

const BOUNDS: JsonBounds = { depth: 64, values: 1_000, lists: 100, items: 200, text: 500, fields: 50 };

/** In chunks of a few bytes, so that every text is put together from runs. */
function read(json: string | Uint8Array, { run = 4, bounds = BOUNDS } = {}): unknown {
  const bytes = typeof json === 'string' ? Buffer.from(json) : json;
  const reader = new JsonReader(bounds, run);
  for (const _ of reader.add(bytes));
  return reader.end();
}

function codeOf(json: string | Uint8Array, options: Parameters<typeof read>[1] = {}): string {
  try {
    read(json, options);
    return 'none';
  } catch (error) {
    return error instanceof ThroughlineError ? error.code : String(error);
  }
}

test('a value is the same as from JSON.parse, wherever it is split', () => {
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 5 }),
      fc.integer({ min: 1, max: 40 }),
      fc.constantFrom(0, 1, 2),
      (json, run, space) => {
        fc.pre(!json.includes('__proto__'));
        const spaced = JSON.stringify(JSON.parse(json), null, space);
        expect(
          read(spaced, { run, bounds: { depth: 64, values: 1e9, lists: 1e9, items: 1e9, text: 1e9, fields: 1e9 } }),
        ).toEqual(JSON.parse(json));
      },
    ),
  );
});

test('text that JSON.parse refuses is refused, wherever it is split', () => {
  const pieces = [
    '[',
    ']',
    '{',
    '}',
    ',',
    ':',
    '"a"',
    '"\\""',
    '1',
    '-',
    'true',
    ' ',
    '"',
    '\\',
    'null',
    '[]',
    '{"b":1}',
    '\u00a0',
    '\ufeff',
  ];
  const parses = (json: string) => {
    try {
      return { value: JSON.parse(json.replace(/^\ufeff/, '')) };
    } catch {
      return 'invalid';
    }
  };
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...pieces), { maxLength: 12 }),
      fc.integer({ min: 1, max: 9 }),
      (some, run) => {
        const json = some.join('');
        const expected = parses(json);
        if (expected === 'invalid') expect(codeOf(json, { run }), json).toBe('invalid');
        else expect({ value: read(json, { run }) }, json).toEqual(expected);
      },
    ),
    { numRuns: 5_000 },
  );
});

describe('invalid JSON', () => {
  test.each([
    ...[
      '',
      ' ',
      '{',
      '[1,]',
      '[,1]',
      '[1,,2]',
      '[1 2]',
      '{"a":1,}',
      '{"a"}',
      '[[1]2]',
      '[[1][2]]',
      '{"a":[1]"b":[2]}',
      '[1]]',
      '[1}',
    ],
    ...['[1][2]', '1,2', '"a', '[[1,2,3],]', '{"a":{"b":1},}', '{{"a":1}}', '{[1]:2}', '[{"a":1} x]', 'x[1]', '[1]x'],
    ...['[\u00a0[1]]', '[[1]\u00a0]', '{\u00a0"a":[1]}', '{"a":\u00a0[1]}', '{"a"[1]}', '{"a":1[1]}'],
    new Uint8Array([0x5b, 0x22, 0xff, 0xfe, 0x22, 0x5d]),
  ])('%s', (json) => {
    expect(codeOf(json)).toBe('invalid');
  });
});

test('texts in a list or object are complete, also when they arrive in several chunks', () => {
  const value = { a: ['ü'.repeat(50), { 'b"\\': '€😀' }], c: [[], {}, [[1, 2], [3]]], d: { e: { f: {} } } };
  for (let run = 1; run < 60; run += 1) expect(read(JSON.stringify(value), { run })).toEqual(value);
});

test.each([
  ['too deep', `${'['.repeat(65)}${']'.repeat(65)}`, 'invalid'],
  ['too many values', `[${`[${'1,'.repeat(150)}1],`.repeat(7)}1]`, 'too_large'],
  ['too many values in one list', `[${'1,'.repeat(200)}1]`, 'too_large'],
  ['too many lists', `[${'[],'.repeat(100)}1]`, 'too_large'],
  ['too many fields', `{${Array.from({ length: 51 }, (_, i) => `"f${i}":1`).join(',')}}`, 'too_large'],
  ['a text that is too long', `["${'x'.repeat(510)}"]`, 'too_large'],
  ['a name that reaches the prototype', '{"a":{"__proto__":{}}}', 'invalid'],
  ['one that is escaped', '[{"\\u005f_proto__":1}]', 'invalid'],
  ['one around a long value', `{"__proto__":[${'1,'.repeat(100)}1]}`, 'invalid'],
])('%s is refused', (_, json, code) => {
  expect(codeOf(json)).toBe(code);
});

test('a byte order mark is skipped', () => {
  for (const run of [1, 2, 3, 4, 9]) {
    expect(read('\ufeff{"a":1}', { run })).toEqual({ a: 1 });
    for (const json of ['\ufeff', '\ufeff\ufeff1', '[\ufeff1]', '[[1]\ufeff]'])
      expect(codeOf(json, { run })).toBe('invalid');
  }
});

test('a value that exceeds a limit is refused at once, before the rest arrives', () => {
  const reader = new JsonReader(BOUNDS, 4);
  const endless = () => {
    for (let sent = 0; ; sent += 1) for (const _ of reader.add(Buffer.from(sent === 0 ? '[[],' : '[],')));
  };
  expect(endless).toThrow('more than 100 lists');
});

test('a number or white space that never ends is refused', () => {
  const reader = new JsonReader(BOUNDS);
  const endless = () => {
    for (;;) for (const _ of reader.add(Buffer.alloc(65_536, '1')));
  };
  expect(endless).toThrow('not valid JSON');
});
