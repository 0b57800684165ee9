import { describe, expect, test } from 'vitest';
import type { Scope } from '../../../../src/core/key.ts';
import type { Operation } from '../../../../src/wire/operations/operation.ts';
import { OPERATIONS } from '../../../../src/wire/operations.ts';
import { type OperationName, ROUTES } from '../../../../src/wire/routes.ts';
import { Caller } from '../support/caller.ts';
import { ServedHome, TOKEN } from '../support/served-home.ts';

describe('who', () => {
  test.each([
    'Bearer',
    'Bearer ',
    'Bearer wrong',
    `Basic ${TOKEN}`,
    `Bearer ${TOKEN}x`,
    `Bearer ${TOKEN.slice(1)}`,
    `Bearer tl_0123456789abcdef.${'A'.repeat(43)}`,
  ])('"%s" is nobody', async (authorization) => {
    await using home = await ServedHome.start();
    const { status, headers } = await new Caller(home.url, { authorization }).get('/conversations');
    expect(status).toBe(401);
    expect(headers.get('www-authenticate')).toMatch(/^Bearer/);
  });

  test('no operation is served to nobody', async () => {
    await using home = await ServedHome.start();
    const nobody = new Caller(home.url, {});
    for (const { method, path } of Object.values(ROUTES)) {
      const filled = path.replaceAll(/\{\w+\}/g, 'x');
      expect({ path, status: (await nobody.ask(method, filled)).status }).toEqual({ path, status: 401 });
    }
    expect((await nobody.get('//metrics')).status).toBe(401);
  });

  test('a key is what its scopes say, until it expires or is revoked', async () => {
    await using home = await ServedHome.start();
    const reader = await home.key('ann', ['read']);
    expect((await reader.caller.get('/conversations')).status).toBe(200);
    expect((await reader.caller.post('/conversations', {})).body).toMatchObject({ code: 'forbidden' });
    expect((await reader.caller.get('//metrics')).status).toBe(403);
    expect((await (await home.key('ann', [])).caller.get('/conversations')).status).toBe(403);
    expect((await (await home.key('ann', ['read'], 1)).caller.get('/conversations')).status).toBe(401);
    const wrong = reader.key.slice(0, -1) + (reader.key.endsWith('A') ? 'B' : 'A');
    expect((await new Caller(home.url, { authorization: `Bearer ${wrong}` }).get('/agents')).status).toBe(401);
    await home.revoke('ann', reader.id);
    expect((await reader.caller.get('/conversations')).status).toBe(401);
  });

  test('each scope opens its operations and no others', async () => {
    await using home = await ServedHome.start();
    for (const scope of ['read', 'prompt', 'approve', 'admin'] as const satisfies Scope[]) {
      const { caller } = await home.key('ann', [scope]);
      for (const [name, operation] of Object.entries<Operation>(OPERATIONS)) {
        const { method, path } = ROUTES[name as OperationName];
        if (operation.stream && operation.scope === scope) continue;
        const { status } = await caller.ask(method, path.replaceAll(/\{\w+\}/g, 'x'));
        expect({ path, scope, refused: status === 403 }).toEqual({
          ...{ path, scope, refused: operation.scope !== scope || operation.tokenOnly === true },
        });
      }
    }
  });

  test('directories and native sessions of the machine are for "admin"', async () => {
    await using home = await ServedHome.start();
    const { caller } = await home.key('ann', ['read', 'prompt', 'approve']);
    expect((await caller.post('/conversations', { cwd: '/etc' })).status).toBe(403);
    await caller.ok('POST', '/conversations', { key: 'chat' });
    expect((await caller.post('/conversations/chat/turns', { prompt: 'x', session: 'another' })).status).toBe(403);
    expect((await caller.post('/conversations/chat/fork', { cwd: '/' })).status).toBe(403);
    expect((await caller.post('/imports', { exported: {}, cwd: '/' })).status).toBe(403);
  });

  test('only the token acts for others', async () => {
    await using home = await ServedHome.start();
    const asAnn = home.caller.with({ 'throughline-owner': 'ann%20%C3%A4' });
    expect(await asAnn.ok('POST', '/conversations', { key: 'hers' })).toMatchObject({ owner: 'ann ä' });
    expect((await home.caller.get('/conversations/hers')).status).toBe(404);
    const { caller } = await home.key('bob', ['read', 'admin']);
    expect((await caller.with({ 'throughline-owner': 'ann%20%C3%A4' }).get('/conversations/hers')).status).toBe(403);
  });

  test('a stream ends when its key is revoked', async () => {
    await using home = await ServedHome.start({ server: { stream: { checkMs: 20 } } });
    const { caller, id } = await home.key('ann', ['read', 'prompt']);
    const other = await home.key('ann', ['read']);
    await caller.ok('POST', '/conversations', { key: 'chat' });
    const stop = new AbortController();
    const others = other.caller.events('/events', {}, stop.signal).next();
    let seen = 0;
    for await (const _ of caller.events('/conversations/chat/events')) {
      seen += 1;
      await home.revoke('ann', id);
    }
    expect(seen).toBe(1);
    expect(home.metrics.readers).toBe(1);
    stop.abort();
    await expect(others).rejects.toThrow();
  });

  test('a link that signs a browser in is given to the token alone, for the owner that it signs in', async () => {
    await using home = await ServedHome.start();
    const { body, status } = await home.caller.post('/links');
    expect({ status, body }).toMatchObject({ status: 201, body: { expiresAt: expect.any(Number) } });
    const browser = new Caller(home.url, { 'sec-fetch-site': 'none' });
    const entered = await browser.get(`/${body.link.slice(home.url.length)}`);
    const cookie = (entered.headers.get('set-cookie') ?? '').split(';')[0] as string;
    const page = new Caller(home.url, { cookie, 'sec-fetch-site': 'same-origin', origin: home.url });
    expect((await page.get('/me')).body).toMatchObject({ owner: 'local', by: 'page' });
    expect((await browser.get(`/${body.link.slice(home.url.length)}`)).body).toMatchObject({
      hint: expect.stringContaining('"throughline link"'),
    });
    const everything = ['read', 'prompt', 'approve', 'admin'] as const;
    const keys = await Promise.all(['local', 'ann'].map((owner) => home.key(owner, everything)));
    for (const { caller } of [...keys, { caller: page }]) {
      expect(await caller.post('/links')).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    }
    const forAnn = await home.caller.with({ 'throughline-owner': 'ann' }).post('/links');
    expect(forAnn).toMatchObject({ status: 403, body: { detail: expect.stringContaining('not as "ann"') } });
  });
});
