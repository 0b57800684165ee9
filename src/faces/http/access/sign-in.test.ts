import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { type Grant, PAGE_SCOPES, SCOPES, type Scope } from '../../../core/key.ts';
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
    ['an invalid owner', TOKEN, { owner: '..', scopes: ['read'] }, 'invalid', /owner/],
  ])('is refused: %s', (_, by, asked, code, message) => {
    expect(() => grantBy(by, asked)).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    );
  });

  test('the hint names another owner as a shell takes it', () => {
    const hint = 'On the machine of the server: "throughline link --as \'Ann Lee\' --scopes read,prompt".';
    expect(() => grantBy(PAGE, { owner: 'Ann Lee', scopes: ['read'] })).toThrow(expect.objectContaining({ hint }));
  });
});

const GRANTED = { owner: 'Jürgen.ß', scopes: ['read', 'prompt'] as const };
const newStore = () => openAt(join(temporaryFolder(), 'store.db'));
const codeOf = async (signIn: SignIn, grant: Grant) => (await signIn.newLink('', grant)).link.split('=')[1] ?? '';

describe('the code of a link', () => {
  test('works at every server with the same token, once, and is nowhere in the store', async () => {
    const file = join(temporaryFolder(), 'store.db');
    const [a, b, other] = ['token', 'token', 'another'].map(async (token) => {
      return new SignIn(token, await openAt(file), Date.now);
    }) as [Promise<SignIn>, Promise<SignIn>, Promise<SignIn>];
    const code = await codeOf(await a, { ...GRANTED, expiresAt: null });
    expect(['', '-wal'].map((end) => readFileSync(`${file}${end}`).includes(code))).toEqual([false, false]);
    expect(await (await other).redeem(code, DOOR)).toBeNull();
    const cookie = await (await b).redeem(code, DOOR);
    expect((await a).grantOf(/^c=(.*?);/.exec(cookie ?? '')?.[1] ?? '')).toMatchObject(GRANTED);
    expect([await (await a).redeem(code, DOOR), await (await b).redeem(code, DOOR)]).toEqual([null, null]);
  });
});

describe('the cookie', () => {
  const enter = async (signIn: SignIn, expiresAt: number | null = null) => {
    const code = await codeOf(signIn, { ...GRANTED, expiresAt });
    const [, value = ''] = /^c=(.*?);/.exec((await signIn.redeem(code, DOOR)) ?? '') ?? [];
    return value;
  };

  test('has the rights of the link, for a week, or as long as the credentials that created the link', async () => {
    let now = 1_000;
    const signIn = new SignIn('token', await newStore(), () => now);
    const [week, day] = [await enter(signIn), await enter(signIn, now + DAY)];
    expect(signIn.grantOf(week)).toEqual({ ...GRANTED, expiresAt: now + 7 * DAY });
    expect(signIn.grantOf(day)).toEqual({ ...GRANTED, expiresAt: now + DAY });
    now += DAY;
    expect([signIn.grantOf(week) === null, signIn.grantOf(day)]).toEqual([false, null]);
    now += 6 * DAY;
    expect(signIn.grantOf(week)).toBeNull();
  });

  test('is not valid when any part of it is changed, or with another token', async () => {
    const store = await newStore();
    const signIn = new SignIn('token', store, Date.now);
    const cookie = await enter(signIn);
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
    expect(new SignIn('another', store, Date.now).grantOf(cookie)).toBeNull();
    expect(signIn.grantOf(cookie)).not.toBeNull();
  });

  test('of an older version, which had every scope, is no longer valid', async () => {
    const key = createHmac('sha256', 'token').update('throughline cookie').digest();
    const claim = `${Date.now() + DAY}.nonce`;
    const old = `${claim}.${createHmac('sha256', key).update(claim).digest('base64url')}`;
    expect(new SignIn('token', await newStore(), Date.now).grantOf(old)).toBeNull();
  });
});
