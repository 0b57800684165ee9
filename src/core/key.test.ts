import { expect, test } from 'vitest';
import { checkRights, isAmong, ownersOf, type Scope } from './key.ts';

test.each([
  ['app:*', 'app:ann', true],
  ['app:*', 'app:ann:tablet', true],
  ['app:*', 'app:*', true],
  ['acme/*', 'acme/ann', true],
  ['app:*', 'app:', false],
  ['app:*', 'app', false],
  ['app:*', 'app2:ann', false],
  ['app:*', 'application', false],
  ['app:*', 'App:ann', false],
  ['app:*', 'ann', false],
  ['app:*', ' app:ann', false],
  ['app:*', 'аpp:ann', false], // its first letter is Cyrillic
  ['app:*', 'app：ann', false], // a wide colon
  ['app:*', 'app/ann', false],
  ['*', 'ann', true],
  [null, 'ann', false],
  // Nobody can create these, but a damaged row may have them.
  ['', 'ann', false],
  ['app', 'app', false],
  ['app*', 'application', false],
  ['app:', 'app:ann', false],
])('the owners %j include %j: %s', (owners, owner, expected) => {
  expect(isAmong(owners, owner)).toBe(expected);
});

test('without the scope, a key acts for nobody else, whatever its owners are', () => {
  const scopes: Scope[] = ['read', 'admin'];
  expect(ownersOf({ scopes, owners: null })).toBeNull();
  expect(ownersOf({ scopes, owners: 'app:*' })).toBeNull();
  expect(ownersOf({ scopes: [...scopes, 'act-as'], owners: null })).toBe('*');
  expect(ownersOf({ scopes: [...scopes, 'act-as'], owners: 'app:*' })).toBe('app:*');
});

test('only a prefix that ends with a separator can be given, and only with the scope', () => {
  const scopes: Scope[] = ['act-as', 'read'];
  for (const owners of [null, 'app:*', 'acme/*', 'a:b:*', 'ä:*']) checkRights({ scopes, owners });
  for (const owners of [
    '',
    '*',
    ':*',
    'app',
    'app*',
    'app:',
    'app:**',
    'a*:*',
    '*app:*',
    'app:* ',
    'app-*',
    'a\u0308:*',
  ]) {
    expect(() => checkRights({ scopes, owners }), owners).toThrow(expect.objectContaining({ code: 'invalid' }));
  }
  expect(() => checkRights({ scopes, owners: 'app-*' })).toThrow(/not a prefix of owners/);
  expect(() => checkRights({ scopes: ['read'], owners: 'app:*' })).toThrow(/scope "act-as"/);
  expect(() => checkRights({ scopes: ['act-as'], owners: null })).toThrow(/has no permissions/);
  checkRights({ scopes: ['read'], owners: null });
});
