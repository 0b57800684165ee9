import { describe, expect, test } from 'vitest';
import { Caller } from '../support/caller.ts';
import { ServedHome } from '../support/served-home.ts';

describe('from which page', () => {
  test.each([
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://127.0.0.1:1' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])('another one is served nothing, not even with the token: %o', async (headers) => {
    await using home = await ServedHome.start();
    const { status, body } = await home.caller.with(headers).post('/conversations', { key: 'csrf' });
    expect({ status, ...body }).toMatchObject({
      status: 403,
      code: 'forbidden',
      hint: expect.stringContaining(home.url),
    });
    expect((await home.caller.get('/conversations/csrf')).status).toBe(404);
  });

  test('no answer allows other pages to read it', async () => {
    await using home = await ServedHome.start();
    const { headers } = await home.caller.get('/conversations');
    expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect((await home.caller.with({ origin: 'https://evil.example' }).ask('OPTIONS', '/conversations')).status).toBe(
      403,
    );
    expect((await home.caller.ask('OPTIONS', '/conversations')).status).toBe(405);
  });
});

describe('the cookie of the page', () => {
  test('a link works once, for a cookie that no script reads and no other site sends', async () => {
    await using home = await ServedHome.start();
    const link = home.newLink().slice(home.url.length);
    const browser = new Caller(home.url, { 'sec-fetch-site': 'none' });
    const entered = await browser.get(`/${link}`);
    expect(entered.status).toBe(303);
    expect(entered.headers.get('set-cookie')).toMatch(
      new RegExp(`^throughline-${home.port}=.*; Path=/; HttpOnly; SameSite=Strict; Max-Age=\\d+$`),
    );
    expect((await browser.get(`/${link}`)).status).toBe(401);
    expect((await browser.get('//enter?code=guess')).status).toBe(401);
  });

  test('counts only with the word of the browser that a page of ours asked', async () => {
    await using home = await ServedHome.start();
    const { headers } = await new Caller(home.url, {}).get(`/${home.newLink().slice(home.url.length)}`);
    const cookie = (headers.get('set-cookie') ?? '').split(';')[0] as string;
    const ours = { cookie, 'sec-fetch-site': 'same-origin', origin: home.url };
    const create = (given: Record<string, string>) =>
      new Caller(home.url, given).post('/conversations', { key: 'mine' }).then(({ status }) => status);
    expect(await create(ours)).toBe(200);
    expect(await create({ cookie, origin: home.url })).toBe(401);
    expect(await create({ cookie, 'sec-fetch-site': 'same-origin' })).toBe(401);
    expect(await create({ cookie, 'sec-fetch-site': 'none', origin: home.url })).toBe(401);
    expect(await create({ cookie })).toBe(401);
    const look = (given: Record<string, string>) =>
      new Caller(home.url, { cookie, ...given }).get('/conversations').then(({ status }) => status);
    expect(await look({ 'sec-fetch-site': 'same-origin' })).toBe(200);
    expect(await look({ 'sec-fetch-site': 'none' })).toBe(200);
    expect(await look({})).toBe(401);
    expect(await look({ 'sec-fetch-site': 'same-origin', cookie: `${cookie}; ${cookie}` })).toBe(401);
    expect(await look({ 'sec-fetch-site': 'same-origin', cookie: cookie.replace(/=\d/, '=9') })).toBe(401);
    expect(await look({ 'sec-fetch-site': 'same-origin', authorization: 'Bearer wrong' })).toBe(401);
    expect(await look({ 'sec-fetch-site': 'same-origin', 'throughline-owner': 'ann' })).toBe(403);
  });
});
