import { expect, test } from 'vitest';
import { parseSettings } from '../input/settings.ts';
import { fileOfOwner, hides, isPerOwner, placeOf, unfinishedIn } from './credentials.ts';

test('a name is a variable, or a file in the home and nowhere else', () => {
  expect(placeOf('API_KEY')).toEqual({ variable: 'API_KEY' });
  expect(placeOf('~/.agent/auth.json')).toEqual({ file: '.agent/auth.json' });
  for (const name of ['', '1KEY', 'A-B', '~', '~/', '~/../x', '~/a//b', '~/./a', '~/a\0', '/etc/passwd', '.agent']) {
    expect(placeOf(name)).toBeNull();
  }
});

test('the settings need either a variable or a file for each value', () => {
  const agents = (credentials: unknown) => parseSettings({ agents: { a: { adapter: 'scripted', credentials } } });
  const good = { KEY: { env: 'OUR_KEY' }, '~/.a/b': { file: 'keys/{owner}' } };
  expect(agents(good).agents.a?.credentials).toEqual(good);
  for (const wrong of [{ KEY: {} }, { KEY: { env: 'A', file: 'b' } }]) {
    expect(() => agents(wrong)).toThrow('"agents.a.credentials.KEY" must be { "env": NAME } or { "file": PATH }');
  }
  expect(() => agents({ 'A-B': { env: 'A' } })).toThrow('"A-B", which is neither the name of a variable nor "~/PATH"');
  expect(() => agents({ KEY: 'sk-1' })).toThrow('must be an object');
});

test('the file of an owner is one segment of the path, whatever the name of the owner', () => {
  expect(isPerOwner({ file: 'keys/{owner}/k' })).toBe(true);
  expect(isPerOwner({ env: 'KEY' })).toBe(false);
  expect(fileOfOwner('keys/{owner}/{owner}', 'ann')).toBe('keys/ann/ann');
  expect(fileOfOwner('keys/{owner}', 'a/../b$&')).toBe('keys/a%2F..%2Fb%24%26');
  for (const [owner, part] of [
    ['..', '%2E%2E'],
    ['.x', '%2Ex'],
    ['{owner}', '%7Bowner%7D'],
  ] as const) {
    expect(fileOfOwner('keys/{owner}', owner)).toBe(`keys/${part}`);
  }
});

test('secrets are replaced in every text, and a value without secrets is returned unchanged', () => {
  const hide = hides({ KEY: 'secret-1$&', LONG: 'secret-1$&-more', SHORT: 'abc', '~/f': 'a whole file' });
  expect(hide('secret-1$&-more, secret-1$&, abc')).toBe('[LONG], [KEY], abc');
  const clean = { list: [1, null, 'abc', { text: 'a whole file' }], bytes: new Uint8Array(1) };
  expect(hide(clean)).toBe(clean);
  expect(hide({ ...clean, deep: [{ text: 'is secret-1$&!' }] })).toEqual({ ...clean, deep: [{ text: 'is [KEY]!' }] });
});

test('the length of a possible partial secret at the end of a text is found', () => {
  const unfinished = unfinishedIn({ KEY: 'secret-1', LONG: 'secret-1-more', SHORT: 'abc', AGAIN: 'xy-12345-xy' });
  expect(['', 'a b', 'ab', 'a sec!', 'a secret-1-more'].map(unfinished)).toEqual([0, 0, 0, 0, 0]);
  expect(['s', 'a secret-', 'ssse', 'a secret-1', 'a secret-1-mor'].map(unfinished)).toEqual([1, 7, 2, 8, 12]);
  // A complete value is not partial, even if its end looks like its beginning.
  expect(unfinished('xy-12345-xy')).toBe(0);
});
