import { describe, expect, test } from 'vitest';
import { PAGE_SCOPES, SCOPES } from '../../../../src/core/key.ts';
import type { Operation } from '../../../../src/wire/operations/operation.ts';
import { OPERATIONS } from '../../../../src/wire/operations.ts';
import { type OperationName, ROUTES } from '../../../../src/wire/routes.ts';
import { Caller } from '../support/caller.ts';
import { rawRequest } from '../support/raw-request.ts';
import { ServedHome, TOKEN } from '../support/served-home.ts';

/** The headers of a request with a wrong secret for the key with this id. */
function wrongSecret(home: ServedHome, id: string): Record<string, string> {
  return { host: `127.0.0.1:${home.port}`, authorization: `Bearer tl_${id}.${'A'.repeat(43)}` };
}

describe('authentication', () => {
  test.each([
    'Bearer',
    'Bearer ',
    'Bearer wrong',
    `Basic ${TOKEN}`,
    `Bearer ${TOKEN}x`,
    `Bearer ${TOKEN.slice(1)}`,
    `Bearer tl_0123456789abcdef.${'A'.repeat(43)}`,
  ])('refuses "Authorization: %s"', async (authorization) => {
    await using home = await ServedHome.start();
    const { status, headers } = await new Caller(home.url, { authorization }).get('/conversations');
    expect(status).toBe(401);
    expect(headers.get('www-authenticate')).toMatch(/^Bearer/);
  });

  test('is needed for every operation, and for /metrics', async () => {
    await using home = await ServedHome.start();
    const anonymous = new Caller(home.url, {});
    for (const { method, path } of Object.values(ROUTES)) {
      const filled = path.replaceAll(/\{\w+\}/g, 'x');
      expect({ path, status: (await anonymous.ask(method, filled)).status }).toEqual({ path, status: 401 });
    }
    expect((await anonymous.get('//metrics')).status).toBe(401);
  });

  test('accepts a key for what its scopes allow, until it expires or is revoked', async () => {
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

  test('allows a key with one scope the operations of that scope, and no others', async () => {
    await using home = await ServedHome.start();
    for (const scope of SCOPES) {
      const { caller } = await home.key('ann', [scope]);
      for (const [name, operation] of Object.entries<Operation>(OPERATIONS)) {
        const { method, path } = ROUTES[name as OperationName];
        if (operation.stream && operation.scope === scope) continue;
        const { status } = await caller.ask(method, path.replaceAll(/\{\w+\}/g, 'x'));
        expect({ path, scope, refused: status === 403 }).toEqual({
          ...{
            path,
            scope,
            refused: operation.scope !== scope || operation.notByKey === true || operation.operatorOnly === true,
          },
        });
      }
    }
  });

  test('logs wrong secrets of a key and delays the answers more and more, but not those to right secrets and other keys', async () => {
    await using home = await ServedHome.start();
    const [ann, bob] = [await home.key('ann', ['read']), await home.key('bob', ['read'])];
    const guess = (id: string) => rawRequest(home, '/v1/me', wrongSecret(home, id));
    const before = performance.now();
    for (let n = 0; n < 5; n += 1) expect((await guess(ann.id)).status).toBe(401);
    // Three answers come at once. The next two are delayed by 100 and 200 ms; timers may be a little early.
    expect(performance.now() - before).toBeGreaterThan(290);
    // The last of these are delayed by five seconds.
    let answered = 0;
    const delayed = Array.from({ length: 8 }, () => guess(ann.id).finally(() => (answered += 1)));
    for (const { caller } of [ann, bob]) expect((await caller.get('/me')).status).toBe(200);
    expect((await guess(bob.id)).status).toBe(401);
    expect(answered).toBeLessThan(8);
    const lines = home.log.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'authentication failed');
    expect(lines.slice(0, 1)).toMatchObject([{ level: 40, by: `key ${ann.id}`, failures: 1 }]);
    expect(lines.filter(({ by }) => by === `key ${bob.id}`)).toMatchObject([{ level: 40, failures: 1 }]);
    expect(home.log.join('')).not.toContain('AAAA');
    // A server that stops answers them at once.
    await home.down();
    expect((await Promise.all(delayed)).map(({ status }) => status)).toEqual(Array(8).fill(401));
  });

  test('logs wrong tokens, links and cookies as well, but only some of many failures', async () => {
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

  test('also delays failures by the address of the client, behind a trusted proxy', async () => {
    const server = { publicUrl: 'https://agents.example.org', trustProxy: true };
    await using home = await ServedHome.start({ server });
    const guess = (n: number, address: string) => {
      const headers = {
        ...wrongSecret(home, String(n).padStart(16, '0')),
        'x-forwarded-for': `203.0.113.9, ${address}`,
      };
      return rawRequest(home, '/v1/me', { ...headers, host: 'agents.example.org' });
    };
    let answered = 0;
    const delayed = Array.from({ length: 12 }, (_, n) => guess(n, '192.0.2.1').finally(() => (answered += 1)));
    expect((await guess(99, '192.0.2.2')).status).toBe(401);
    expect(answered).toBeLessThan(12);
    expect(home.log.join('')).toContain('"address":"192.0.2.1"');
    await home.down();
    expect((await Promise.all(delayed)).map(({ status }) => status)).toEqual(Array(12).fill(401));
  });

  test('allows only "admin" to start agents in order to see their logins', async () => {
    await using home = await ServedHome.start();
    const { caller } = await home.key('ann', ['read', 'prompt', 'approve']);
    expect((await caller.get('/agents')).status).toBe(200);
    const refused = { status: 403, body: { detail: 'Asking for logins needs the scope "admin".' } };
    expect(await caller.get('/agents?login=true')).toMatchObject(refused);
    const { caller: admin } = await home.key('ann', ['read', 'admin']);
    expect((await admin.get('/agents?login=true')).status).toBe(200);
  });

  test('allows only "admin" to name directories and native sessions of the machine', async () => {
    await using home = await ServedHome.start();
    const { caller } = await home.key('ann', ['read', 'prompt', 'approve']);
    expect((await caller.post('/conversations', { cwd: '/etc' })).status).toBe(403);
    const prompt = 'Hello';
    expect((await caller.post('/conversations/new/turns', { prompt, create: { cwd: '/etc' } })).status).toBe(403);
    const { caller: writer } = await home.key('bea', ['read', 'prompt']);
    expect((await writer.post('/conversations/new/turns', { prompt, create: { mode: 'yolo' } })).status).toBe(403);
    expect((await writer.post('/conversations/new/turns', { prompt, create: { key: 'other' } })).status).toBe(400);
    await caller.ok('POST', '/conversations', { key: 'chat' });
    expect((await caller.post('/conversations/chat/turns', { prompt: 'x', session: 'another' })).status).toBe(403);
    expect((await caller.post('/conversations/chat/fork', { cwd: '/' })).status).toBe(403);
    expect((await caller.post('/imports', { exported: {}, cwd: '/' })).status).toBe(403);
  });

  test('ends a stream when its key is revoked, but not the stream of another key', async () => {
    await using home = await ServedHome.start({ server: { stream: { checkMs: 20 } } });
    const { caller, id } = await home.key('ann', ['read', 'prompt']);
    const other = await home.key('ann', ['read']);
    await caller.ok('POST', '/conversations', { key: 'chat' });
    const stop = new AbortController();
    const reading = other.caller.events('/events', {}, stop.signal).next();
    let seen = 0;
    for await (const _ of caller.events('/conversations/chat/events')) {
      seen += 1;
      await home.revoke('ann', id);
    }
    expect(seen).toBe(1);
    expect(home.metrics.readers).toBe(1);
    stop.abort();
    await expect(reading).rejects.toThrow();
  });
});

describe('a sign-in link', () => {
  /** Opens the link in a browser. Returns the page, with its cookie. */
  async function open(home: ServedHome, link: string): Promise<Caller> {
    const browser = new Caller(home.url, { 'sec-fetch-site': 'none' });
    const signedIn = await browser.get(`/${link.slice(home.url.length)}`);
    const cookie = (signedIn.headers.get('set-cookie') ?? '').split(';')[0] as string;
    return new Caller(home.url, { cookie, 'sec-fetch-site': 'same-origin', origin: home.url });
  }
  const openNewLink = async (home: ServedHome, options: object) =>
    open(home, (await home.caller.ok('POST', '/links', options)).link);

  test('is created with the token for any owner, and gives exactly the scopes that were named', async () => {
    await using home = await ServedHome.start();
    const { body, status } = await home.caller.post('/links');
    const everything = ['read', 'prompt', 'approve', 'admin'] as const;
    expect({ status, body }).toMatchObject({
      status: 201,
      body: { expiresAt: expect.any(Number), owner: 'local', scopes: everything },
    });
    const own = await open(home, body.link);
    const week = Date.now() + 7 * 24 * 3_600_000;
    const me = (await own.get('/me')).body;
    expect(me).toEqual({
      owner: 'local',
      by: 'page',
      scopes: everything,
      owners: null,
      isOperator: true,
      command: 'throughline',
      expiresAt: expect.any(Number),
    });
    expect(Math.abs(me.expiresAt - week)).toBeLessThan(60_000);
    expect((await new Caller(home.url, {}).get(`/${body.link.slice(home.url.length)}`)).body).toMatchObject({
      hint: expect.stringContaining('"throughline link"'),
    });
    const ann = home.caller.with({ 'throughline-owner': 'ann' });
    expect(await ann.post('/links')).toMatchObject({
      status: 400,
      body: { detail: expect.stringMatching(/scopes/) },
    });
    await ann.ok('POST', '/conversations', { key: 'hers' });
    for (const link of [
      (await ann.ok('POST', '/links', { scopes: ['read'] })).link,
      (await home.caller.ok('POST', '/links', { owner: 'ann', scopes: ['read'] })).link,
    ]) {
      const page = await open(home, link);
      expect((await page.get('/me')).body).toMatchObject({
        ...{ owner: 'ann', by: 'page', scopes: ['read'], isOperator: false },
      });
      expect((await page.get('/conversations')).body.conversations).toMatchObject([{ key: 'hers' }]);
      expect((await page.with({ 'throughline-owner': 'local' }).get('/conversations')).status).toBe(403);
    }
  });

  test('with a scope allows the operations of that scope and of "read", and no others', async () => {
    await using home = await ServedHome.start();
    for (const scope of PAGE_SCOPES) {
      const page = await openNewLink(home, { owner: 'ann', scopes: ['read', scope] });
      for (const [name, operation] of Object.entries<Operation>(OPERATIONS)) {
        const { method, path } = ROUTES[name as OperationName];
        const isOpen = !operation.operatorOnly && (operation.scope === scope || operation.scope === 'read');
        if (operation.stream && isOpen) continue;
        const { status } = await page.ask(method, path.replaceAll(/\{\w+\}/g, 'x'));
        expect({ path, scope, refused: status === 403 }).toEqual({ path, scope, refused: !isOpen });
      }
      expect((await page.get('//metrics')).status).toBe(scope === 'admin' ? 200 : 403);
      expect((await page.get('//backup')).status).toBe(403); // it has the data of all owners
    }
  });

  test('cannot be created with a key, nor by a page for more than that page may do itself', async () => {
    await using home = await ServedHome.start();
    const everything = ['read', 'prompt', 'approve', 'admin'] as const;
    const keys = await Promise.all(['local', 'ann'].map((owner) => home.key(owner, SCOPES)));
    for (const { caller } of keys) {
      for (const one of [caller, caller.with({ 'throughline-owner': 'local' })]) {
        expect(await one.post('/links', { scopes: ['read'] })).toMatchObject({
          status: 403,
          body: { detail: expect.stringContaining('A key is not enough') },
        });
      }
    }
    const page = await openNewLink(home, { owner: 'ann', scopes: ['read', 'admin'] });
    for (const options of [
      { scopes: ['read', 'prompt'] },
      { scopes: [...everything] },
      { owner: 'local' },
      { owner: 'bob', scopes: ['read'] },
    ]) {
      expect(await page.post('/links', options)).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    }
    expect((await page.with({ 'throughline-owner': 'local' }).post('/links', {})).status).toBe(403);
    for (const scope of ['everything', 'act-as']) {
      expect((await page.post('/links', { scopes: ['read', scope] })).status).toBe(400);
      expect((await home.caller.post('/links', { scopes: ['read', scope] })).status).toBe(400);
    }
    const another = await open(home, (await page.ok('POST', '/links', {})).link);
    const [mine, theirs] = [(await page.get('/me')).body, (await another.get('/me')).body];
    expect(theirs).toEqual(mine); // also when it expires
    const reader = await open(home, (await page.ok('POST', '/links', { scopes: ['read'] })).link);
    expect((await reader.post('/links', {})).status).toBe(403);
  });
});
