import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { text } from '../../../test/values/arbitrary.ts';
import { faultOf } from '../../../test/values/thrown.ts';
import { checkWellFormed, findUnpaired, wellFormed } from './well-formed.ts';

const HIGH = '\ud83d';
const LOW = '\ude00';

describe('an unpaired surrogate is found with its place', () => {
  test.each([
    [`ab${HIGH}`, '', 2, 'U+D83D'],
    [LOW, '', 0, 'U+DE00'],
    [`😀${LOW}${HIGH}`, '', 2, 'U+DE00'],
    [`${HIGH}${HIGH}${LOW}`, '', 0, 'U+D83D'],
    [{ a: 'fine', b: [{ c: 'x' }, { d: `no${HIGH}` }] }, 'b[1].d', 2, 'U+D83D'],
    [{ b: HIGH, c: LOW }, 'b', 0, 'U+D83D'],
    [[[HIGH]], '[0][0]', 0, 'U+D83D'],
    [{ a: { [`n${LOW}`]: 1 } }, 'a: a field name', 1, 'U+DE00'],
  ])('%j', (value, path, index, code) => {
    expect(findUnpaired(value)).toEqual({ path, index, code });
  });

  test.each(['', 'a 😀 b', null, 7, { a: ['x', { '😀': '😀' }] }])('and not in %j', (value) => {
    expect(findUnpaired(value)).toBeNull();
    expect(wellFormed(value)).toBe(value);
  });

  test('and the search ends in a value with a cycle', () => {
    const cycle: Record<string, unknown> = {};
    cycle.self = [cycle];
    expect(findUnpaired(cycle)).toBeNull();
  });

  test('however deep it is', () => {
    let value: unknown = HIGH;
    for (let depth = 0; depth < 50_000; depth += 1) value = [value];
    expect(findUnpaired(value)).toMatchObject({ index: 0 });
  });

  test('however many values are beside it', () => {
    const many = Array.from({ length: 300_000 }, () => 'a');
    expect(findUnpaired([...many, HIGH])).toMatchObject({ path: '[300000]' });
  });
});

test('the error says what is wrong, where, and what to do', () => {
  const fault = faultOf(() => checkWellFormed({ text: `ab${HIGH}` }, 'Prompt block 2'));
  expect(fault).toMatchObject({
    code: 'invalid',
    message: 'Prompt block 2 (text) contains an unpaired surrogate, U+D83D at index 2.',
    hint: expect.stringContaining('half of a character'),
  });
});

test('the repaired value is well-formed and otherwise the same, and bytes are unchanged', () => {
  const bytes = new Uint8Array([0xed, 0xa0, 0x80]);
  expect(wellFormed({ a: `x${HIGH}`, [`n${LOW}`]: [1, LOW, { b: null }], bytes })).toEqual({
    a: 'x\ufffd',
    'n\ufffd': [1, '\ufffd', { b: null }],
    bytes,
  });
  fc.assert(
    fc.property(fc.object({ key: text, values: [text, fc.integer(), fc.constant(null)] }), (value) => {
      const replaced = wellFormed(value);
      expect(findUnpaired(replaced)).toBeNull();
      expect(findUnpaired(value) === null).toBe(replaced === value);
    }),
  );
});
