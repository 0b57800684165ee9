import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { PAGE_SCOPES, SCOPES, type Scope } from '../../../core/key.ts';
import { type AskedGrant, grantBy, SignIn } from './sign-in.ts';

const DOOR = { secure: false, cookie: 'c' };
const DAY = 24 * 3_600_000;
const maker = (by: string, owner: string, scopes: readonly Scope[], expiresAt: number | null = null) => ({
  ...{ by, owner, scopes: new Set(scopes), expiresAt, serverOwner: 'local' },
});
const TOKEN = maker('token', 'local', SCOPES);
const FOR_ANN = maker('token', 'ann', SCOPES);
const PAGE = maker('page', 'local', PAGE_SCOPES, 9);
const PAGE_OF_ANN = maker('page', 'ann', ['read', 'prompt', 'admin'], 9);

describe('what a link grants', () => {
  test.each<[string, Parameters<typeof grantBy>[0], AskedGrant, object]>([
    ['the token: everything for the server’s owner', TOKEN, {}, { owner: 'local', scopes: [...PAGE_SCOPES] }],
    ['the token: another owner', TOKEN, { owner: 'ann', scopes: ['read'] }, { owner: 'ann', scopes: ['read'] }],
    [
      'the token for another owner',
      FOR_ANN,
      { scopes: ['prompt', 'read'] },
      { owner: 'ann', scopes: ['read', 'prompt'] },
    ],
    [
      'a page: its own rights, until it ends itself',
      PAGE,
      {},
      { owner: 'local', scopes: [...PAGE_SCOPES], expiresAt: 9 },
    ],
    ['a page: fewer', PAGE, { scopes: ['read', 'read'] }, { owner: 'local', scopes: ['read'], expiresAt: 9 }],
    ['a page of another owner', PAGE_OF_ANN, {}, { owner: 'ann', scopes: ['read', 'prompt', 'admin'], expiresAt: 9 }],
    ['a page that names its owner', PAGE_OF_ANN, { owner: 'ann', scopes: ['read'] }, { owner: 'ann', expiresAt: 9 }],
  ])('%s', (_, by, asked, grant) => {
    expect(grantBy(by, asked)).toMatchObject(grant);
  });

  test.each<[string, Parameters<typeof grantBy>[0], AskedGrant, string, RegExp]>([
    ['a page for another owner', PAGE, { owner: 'ann', scopes: ['read'] }, 'forbidden', /needs the token/],
    ['a page of Ann for the server’s owner', PAGE_OF_ANN, { owner: 'local' }, 'forbidden', /needs the token/],
    ['a scope that the page lacks', PAGE_OF_ANN, { scopes: ['read', 'approve'] }, 'forbidden', /"approve"/],
    ['another owner without scopes', TOKEN, { owner: 'ann' }, 'invalid', /Name the scopes/],
    ['another owner by the header, without scopes', FOR_ANN, {}, 'invalid', /Name the scopes/],
    ['no scopes', TOKEN, { scopes: [] }, 'invalid', /"read"/],
    ['without "read"', TOKEN, { scopes: ['prompt'] }, 'invalid', /"read"/],
    ['an owner that is none', TOKEN, { owner: '..', scopes: ['read'] }, 'invalid', /owner/],
  ])('is refused: %s', (_, by, asked, code, message) => {
    expect(() => grantBy(by, asked)).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    );
  });
});

describe('the cookie', () => {
  const enter = (signIn: SignIn, expiresAt: number | null = null) => {
    const { link } = signIn.newLink('', { owner: 'Jürgen.ß', scopes: ['read', 'prompt'], expiresAt });
    const [, value = ''] = /^c=(.*?);/.exec(signIn.redeem(link.split('=')[1] ?? '', DOOR) ?? '') ?? [];
    return value;
  };

  test('has what the link said, for a week, or as long as its maker', () => {
    let now = 1_000;
    const signIn = new SignIn('token', () => now);
    const [week, day] = [enter(signIn), enter(signIn, now + DAY)];
    const granted = { owner: 'Jürgen.ß', scopes: ['read', 'prompt'] };
    expect(signIn.grantOf(week)).toEqual({ ...granted, expiresAt: now + 7 * DAY });
    expect(signIn.grantOf(day)).toEqual({ ...granted, expiresAt: now + DAY });
    now += DAY;
    expect([signIn.grantOf(week) === null, signIn.grantOf(day)]).toEqual([false, null]);
    now += 6 * DAY;
    expect(signIn.grantOf(week)).toBeNull();
  });

  test('counts for nothing when any part of it is changed, and with another token', () => {
    const signIn = new SignIn('token', Date.now);
    const cookie = enter(signIn);
    const [until, nonce, who, signature] = cookie.split('.');
    const more = Buffer.from(JSON.stringify({ owner: 'Jürgen.ß', scopes: SCOPES })).toString('base64url');
    for (const forged of [
      `${Number(until) + 1}.${nonce}.${who}.${signature}`,
      `${until}.${nonce}.${more}.${signature}`,
      `${until}.${nonce}.${signature}`,
      `${until}.${nonce}.${who}.`,
      `${until}.${nonce}.${who}`,
      '',
    ]) {
      expect(signIn.grantOf(forged)).toBeNull();
    }
    expect(new SignIn('another', Date.now).grantOf(cookie)).toBeNull();
    expect(signIn.grantOf(cookie)).not.toBeNull();
  });

  test('of an older version, which had every scope, is no longer valid', () => {
    const key = createHmac('sha256', 'token').update('throughline cookie').digest();
    const claim = `${Date.now() + DAY}.nonce`;
    const old = `${claim}.${createHmac('sha256', key).update(claim).digest('base64url')}`;
    expect(new SignIn('token', Date.now).grantOf(old)).toBeNull();
  });
});
