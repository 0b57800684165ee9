import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { faultOf } from '../../../test/values/thrown.ts';
import { checkAfter, checkLimit, checkText, checkTokenAddress, shown } from './arguments.ts';

test('a limit and a number to continue after are whole numbers, or left out', () => {
  expect([checkLimit(undefined, 50), checkLimit(7, 50), checkAfter(undefined), checkAfter(3)]).toEqual([50, 7, 0, 3]);
  for (const value of [Number.NaN, 1e300, 0.5, -1, '5', null, {}]) {
    expect(faultOf(() => checkLimit(value, 50))?.code, String(value)).toBe('invalid');
    expect(faultOf(() => checkAfter(value))?.code, String(value)).toBe('invalid');
  }
  expect(faultOf(() => checkLimit(0, 50))?.message).toContain('from 1 to');
});

test('an id is a non-empty text of well-formed Unicode, and not too long', () => {
  expect(checkText('r-1', 'request id')).toBe('r-1');
  for (const value of ['', '  ', 5, null, {}, 'q\ud800', 'x'.repeat(513)]) {
    expect(faultOf(() => checkText(value, 'request id'))?.message).toContain('request id');
  }
});

test('a value is shown as JSON, or by its type if JSON cannot hold it', () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  expect([7, 'a', null, undefined, 1n, circle, () => {}].map(shown)).toEqual([
    '7',
    '"a"',
    'null',
    'nothing',
    'a bigint',
    'a object',
    'a function',
  ]);
});

test('any value can be shown in a few words', () => {
  const anything = fc.anything({
    withBigInt: true,
    withNullPrototype: true,
    withObjectString: true,
    withTypedArray: true,
  });
  fc.assert(
    fc.property(anything, (value) => {
      expect(shown(value).length).toBeLessThanOrEqual(81);
    }),
  );
});

describe('a token', () => {
  const check = (url: string, plainHttp = false) => checkTokenAddress(new URL(url), plainHttp, '"plainHttp"');

  test.each([
    'https://agents.example.org',
    'http://localhost:7717',
    'http://app.localhost',
    'http://127.0.0.1:1',
    'http://127.1.2.3',
    'http://[::1]:7717',
  ])('is sent to %s', (url) => check(url));

  test.each([
    'http://192.0.2.1',
    'http://agents',
    'http://localhost.example.org',
    'http://127.0.0.1.example.org',
    'http://[::2]',
  ])('is sent to %s only if the caller allows it', (url) => {
    expect(() => check(url)).toThrow(
      expect.objectContaining({
        code: 'refused',
        message: expect.stringContaining(url),
        hint: expect.stringContaining('https'),
      }),
    );
    check(url, true);
  });
});
