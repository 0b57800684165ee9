import { describe, expect, test } from 'vitest';
import type { Scope } from '../../../../src/core/key.ts';
import type { Operation } from '../../../../src/wire/operations/operation.ts';
import { OPERATIONS } from '../../../../src/wire/operations.ts';
import { type OperationName, ROUTES } from '../../../../src/wire/routes.ts';
import { Caller } from '../support/caller.ts';
import { rawRequest } from '../support/raw-request.ts';
import { ServedHome, TOKEN } from '../support/served-home.ts';

/** A wrong secret of a key. */
function guessing(home: ServedHome, id: string): Record<string, string> {
  return { host: `127.0.0.1:${home.port}`, authorization: `Bearer tl_${id}.${'A'.repeat(43)}` };
}

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

  test('wrong secrets of a key are logged and answered ever later; its owner and others do not wait', async () => {
    await using home = await ServedHome.start();
    const [ann, bob] = [await home.key('ann', ['read']), await home.key('bob', ['read'])];
    const guess = (id: string) => rawRequest(home, '/v1/me', guessing(home, id));
    const before = performance.now();
    for (let n = 0; n < 5; n += 1) expect((await guess(ann.id)).status).toBe(401);
    expect(performance.now() - before).toBeGreaterThan(290);
    // The last of these are held for five seconds.
    let answered = 0;
    const held = Array.from({ length: 8 }, () => guess(ann.id).finally(() => (answered += 1)));
    for (const { caller } of [ann, bob]) expect((await caller.get('/me')).status).toBe(200);
    expect((await guess(bob.id)).status).toBe(401);
    expect(answered).toBeLessThan(8);
    const lines = home.log.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'authentication failed');
    expect(lines.slice(0, 1)).toMatchObject([{ level: 40, by: `key ${ann.id}`, failures: 1 }]);
    expect(lines.at(-1)).toMatchObject({ level: 40, by: `key ${bob.id}`, failures: 1 });
    expect(home.log.join('')).not.toContain('AAAA');
    // A server that stops answers them at once.
    await home.down();
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual(Array(8).fill(401));
  });

  test('wrong tokens, links and cookies are logged as well, and no request of them fills the log', async () => {
    await using home = await ServedHome.start();
    await new Caller(home.url, { authorization: `Bearer ${TOKEN}x` }).get('/me');
    await new Caller(home.url, { 'sec-fetch-site': 'none' }).get('//enter?code=wrong');
    const cookie = `throughline-${home.port}=1.wrong`;
    await new Caller(home.url, { cookie, 'sec-fetch-site': 'none' }).get('/me');
    for (let n = 0; n < 30; n += 1) await new Caller(home.url, {}).get('/me');
    const lines = home.log.map((line) => JSON.parse(line)).filter(({ level }) => level > 20);
    expect(lines.map(({ by, failures }) => [by, failures])).toEqual([
      ...[
        ['token', 1],
        ['link', 1],
        ['page', 1],
        ['none', 1],
        ['none', 10],
      ],
    ]);
  });

  test('behind a trusted proxy, failures are also slowed by the address of the client', async () => {
    const server = { publicUrl: 'https://agents.example.org', trustProxy: true };
    await using home = await ServedHome.start({ server });
    const guess = (n: number, address: string) => {
      const headers = { ...guessing(home, String(n).padStart(16, '0')), 'x-forwarded-for': `203.0.113.9, ${address}` };
      return rawRequest(home, '/v1/me', { ...headers, host: 'agents.example.org' });
    };
    let answered = 0;
    const held = Array.from({ length: 12 }, (_, n) => guess(n, '192.0.2.1').finally(() => (answered += 1)));
    expect((await guess(99, '192.0.2.2')).status).toBe(401);
    expect(answered).toBeLessThan(12);
    expect(home.log.join('')).toContain('"address":"192.0.2.1"');
    await home.down();
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual(Array(12).fill(401));
  });

  test('starting agents to see their logins is for "admin"', async () => {
    await using home = await ServedHome.start();
    const { caller } = await home.key('ann', ['read', 'prompt', 'approve']);
    expect((await caller.get('/agents')).status).toBe(200);
    const refused = { status: 403, body: { detail: 'Asking for logins needs the scope "admin".' } };
    expect(await caller.get('/agents?login=true')).toMatchObject(refused);
    const { caller: admin } = await home.key('ann', ['read', 'admin']);
    expect((await admin.get('/agents?login=true')).status).toBe(200);
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
