import { describe, expect, test } from 'vitest';
import { formatDestination, isAllowed, parseAllowed, parseAuthority } from './allowlist.ts';

const allowed = (...entries: string[]) => entries.map((entry) => parseAllowed(entry) ?? expect.fail(entry));
const asks = (text: string) => parseAuthority(text) ?? expect.fail(text);

describe('the allowlist', () => {
  test.each([
    ['api.example.org', 'api.example.org:443'],
    ['api.example.org:443', 'API.Example.ORG.:443'],
    ['*.example.org', 'a.b.example.org:443'],
    ['127.0.0.1:4010', '127.0.0.1:4010'],
    ['[::1]:4010', '[::1]:4010'],
    ['localhost:80', 'localhost:80'],
  ])('%s allows %s', (entry, asked) => {
    expect(isAllowed(allowed(entry), asks(asked))).toBe(true);
  });

  test.each([
    ['api.example.org', 'api.example.org:80'],
    ['api.example.org', 'x.api.example.org:443'],
    ['api.example.org', 'api.example.org.evil.net:443'],
    ['*.example.org', 'example.org:443'],
    ['*.example.org', 'evilexample.org:443'],
    ['127.0.0.1:80', '127.1:80'],
    ['127.0.0.1:80', 'localhost:80'],
  ])('%s does not allow %s', (entry, asked) => {
    expect(isAllowed(allowed(entry), asks(asked))).toBe(false);
  });

  test.each([
    '',
    '*',
    '*.',
    '*.com',
    '*.1',
    'a b',
    'a/b',
    'http://a',
    'a:0',
    'a:70000',
    'a:',
    '*a.example.org',
    'a.*.b',
  ])('%j is not an entry', (entry) => {
    expect(parseAllowed(entry)).toBeNull();
  });
});

test.each([
  ...['', 'a', 'a:', ':1', 'a:x', 'a:1:2', 'a:99999', 'a..b:1', '-a:1', 'a\0b:1', 'a@b:1', 'a%2eb:1', 'ä.org:1'],
  ...['a b:1', 'a/b:1', '[::1:1', '::1:1', '[a]:1', '*.example.org:1', `${'a'.repeat(64)}.org:1`],
])('%j is not an authority', (text) => {
  expect(parseAuthority(text)).toBeNull();
});

test('a destination is written as it is read', () => {
  for (const text of ['a.example.org:80', '[::1]:443', '*.example.org:443'])
    expect(formatDestination(parseAllowed(text) ?? expect.fail(text))).toBe(text);
});
