import { describe, expect, test } from 'vitest';
import { parseOrigins } from '../../../../src/faces/http/access/origins.ts';
import { Caller } from '../support/caller.ts';
import { ServedHome } from '../support/served-home.ts';

const cors = (headers: Headers) =>
  Object.fromEntries([...headers].filter(([name]) => /^(access-control|vary|cross-origin)/.test(name)));

describe('a server without allowed origins', () => {
  test.each([
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://127.0.0.1:1' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])('refuses a page of another origin, even with the token: %o', async (headers) => {
    await using home = await ServedHome.start();
    const { status, body } = await home.caller.with(headers).post('/conversations', { key: 'csrf' });
    expect({ status, ...body }).toMatchObject({
      status: 403,
      code: 'forbidden',
      hint: expect.stringContaining(home.url),
    });
    expect((await home.caller.get('/conversations/csrf')).status).toBe(404);
  });

  test('sends no header that allows other pages to read an answer', async () => {
    await using home = await ServedHome.start();
    const { headers } = await home.caller.get('/conversations');
    expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect((await home.caller.with({ origin: 'https://evil.example' }).ask('OPTIONS', '/conversations')).status).toBe(
      403,
    );
    expect((await home.caller.ask('OPTIONS', '/conversations')).status).toBe(405);
  });

  test('refuses a method that a path does not have, and names the methods that it has', async () => {
    await using home = await ServedHome.start();
    for (const [method, path, status, allow] of [
      ['PUT', '/conversations', 405, 'GET, POST'],
      ['DELETE', '/conversations', 405, 'GET, POST'],
      ['PUT', '/conversations/chat', 405, 'GET, PATCH, DELETE'],
      ['POST', '/conversations/chat', 405, 'GET, PATCH, DELETE'],
      ['PUT', '/conversations/chat/events', 405, 'GET'],
      ['PUT', '/nothing', 404, null],
      ['POST', '/nothing', 404, null],
    ] as const) {
      const answer = await home.caller.ask(method, path);
      expect([method, path, answer.status, answer.headers.get('allow')]).toEqual([method, path, status, allow]);
    }
  });

  test('lets every page request /livez, and nothing else', async () => {
    await using home = await ServedHome.start();
    const page = new Caller(home.url, { 'sec-fetch-site': 'cross-site' });
    const live = await page.get('//livez');
    expect([live.status, cors(live.headers)]).toEqual([200, { 'cross-origin-resource-policy': 'cross-origin' }]);
    for (const path of ['//healthz', '//readyz', '//openapi.json', '/conversations'])
      expect((await page.get(path)).status).toBe(403);
  });
});

describe('a page of an allowed origin', () => {
  const APP = 'https://app.example.org';
  const FROM = { origin: APP, 'sec-fetch-site': 'cross-site' };
  const server = { allowOrigins: [APP, 'http://localhost:5173'] };

  test('may send requests with a key, read answers and errors, and follow a conversation', async () => {
    await using home = await ServedHome.start({ server });
    const { caller } = await home.key('ann', ['read', 'prompt']);
    const app = caller.with(FROM);
    const made = await app.post('/conversations', { key: 'chat' });
    expect(made.status).toBe(200);
    const allowed = {
      ...{ vary: 'Origin', 'cross-origin-resource-policy': 'same-origin', 'access-control-allow-origin': APP },
      'access-control-expose-headers': 'throughline-interface, throughline-log, retry-after, allow',
    };
    expect(cors(made.headers)).toEqual(allowed);
    for (const [status, headers] of [
      [404, (await app.get('/conversations/none')).headers],
      [401, (await new Caller(home.url, FROM).get('/conversations')).headers],
      [405, (await app.ask('PUT', '/conversations')).headers],
    ] as const) {
      expect({ status, ...cors(headers) }).toEqual({ status, ...allowed });
    }
    // A page can never use the token, so the hint does not name it.
    const { hint } = (await new Caller(home.url, FROM).get('/conversations')).body as { hint: string };
    expect(hint).toBe('Send "Authorization: Bearer …" with a key ("throughline keys create").');
    const stream = await fetch(`${home.url}/v1/conversations/chat/events`, {
      headers: { ...FROM, authorization: `Bearer ${(await home.key('ann', ['read'])).key}` },
    });
    expect([stream.status, cors(stream.headers)]).toEqual([200, allowed]);
    await stream.body?.cancel();
    // This header would allow cookies.
    expect([...made.headers.keys()]).not.toContain('access-control-allow-credentials');
  });

  test('gets the methods and headers that it may send as the answer to a preflight request', async () => {
    await using home = await ServedHome.start({ server });
    const request = { ...FROM, 'access-control-request-method': 'DELETE', 'access-control-request-headers': 'x' };
    const preflight = await new Caller(home.url, request).ask('OPTIONS', '/conversations/chat');
    expect(preflight.status).toBe(204);
    const answer = {
      ...{ 'access-control-allow-origin': APP, 'access-control-max-age': '600' },
      'access-control-allow-methods': 'GET, POST, PATCH, DELETE',
      'access-control-allow-headers':
        'authorization, content-type, last-event-id, throughline-interface, throughline-owner',
    };
    expect(cors(preflight.headers)).toMatchObject(answer);
    expect(preflight.headers.get('vary')).toMatch(/^Origin, Access-Control-Request-Method/);
    expect(preflight.headers.has('access-control-allow-private-network')).toBe(false);
    const privateRequest = { ...request, 'access-control-request-private-network': 'true' };
    const privatePreflight = await new Caller(home.url, privateRequest).ask('OPTIONS', '/conversations/chat');
    expect(cors(privatePreflight.headers)).toMatchObject({ ...answer, 'access-control-allow-private-network': 'true' });
    expect((await new Caller(home.url, FROM).ask('OPTIONS', '/conversations')).status).toBe(405);
  });

  test.each([
    ['another name', 'https://evil.example'],
    ['a longer name', 'https://app.example.org.evil.example'],
    ['a subdomain', 'https://x.app.example.org'],
    ['the parent domain', 'https://example.org'],
    ['another port', 'https://app.example.org:8443'],
    ['no TLS', 'http://app.example.org'],
    ['no origin', 'null'],
    ['a path', 'https://app.example.org/'],
    ['another case', 'https://APP.example.org'],
    ['a star', '*'],
  ])('is allowed only if its origin is exactly the same, not with %s', async (_, origin) => {
    await using home = await ServedHome.start({ server });
    const { caller } = await home.key('ann', ['read', 'prompt']);
    const request = { origin, 'sec-fetch-site': 'cross-site', 'access-control-request-method': 'POST' };
    for (const method of ['POST', 'OPTIONS']) {
      const { status, body, headers } = await caller.with(request).ask(method, '/conversations', { key: 'x' });
      expect({ status, code: body.code }).toEqual({ status: 403, code: 'forbidden' });
      expect(body.detail).toBe(
        origin === 'null'
          ? 'A page without an origin may not use this server.'
          : `Pages of ${origin} may not use this server.`,
      );
      // The hint suggests --allow-origin only for an origin that can be allowed.
      const suggested = /^https:\/\/[a-z.]+(:\d+)?$/.test(origin);
      expect(body.hint).toMatch(
        suggested ? /^To allow them, start it with .*Or let the page call/ : /^Let the page call/,
      );
      expect([body.hint.includes(`--allow-origin ${origin}`), body.hint.includes('docs/browsers.md')]).toEqual([
        suggested,
        true,
      ]);
      expect(cors(headers)).toEqual({ vary: 'Origin', 'cross-origin-resource-policy': 'same-origin' });
    }
    expect((await caller.get('/conversations')).body.conversations).toEqual([]);
  });

  test('can use neither the token nor the cookie, and only the paths of the interface', async () => {
    await using home = await ServedHome.start({ server });
    const token = await home.caller.with(FROM).get('/conversations');
    expect(token).toMatchObject({ status: 403, body: { detail: expect.stringContaining('needs a key') } });
    expect((await home.caller.with({ ...FROM, authorization: 'Bearer wrong' }).get('/conversations')).status).toBe(403);
    const { headers } = await new Caller(home.url, {}).get(`/${(await home.newLink()).slice(home.url.length)}`);
    const cookie = (headers.get('set-cookie') ?? '').split(';')[0] as string;
    for (const site of ['cross-site', 'same-origin']) {
      const signedIn = new Caller(home.url, { cookie, origin: APP, 'sec-fetch-site': site });
      expect((await signedIn.get('/conversations')).status).toBe(401);
    }
    const { caller } = await home.key('ann', ['read', 'prompt', 'admin']);
    const app = caller.with(FROM);
    for (const path of ['//', '//metrics', '//backup', `/${(await home.newLink()).slice(home.url.length)}`]) {
      const { status, body } = await app.get(path);
      expect({ path, status, code: body.code }).toEqual({ path, status: 403, code: 'forbidden' });
      // The origin is allowed already, so the hint must not suggest to allow it.
      expect(body.detail).toBe(`Pages of ${APP} may use only /v1, the health and the OpenAPI document of this server.`);
      expect(body.hint).not.toContain('--allow-origin');
    }
    for (const path of ['//livez', '//openapi.json']) expect((await app.get(path)).status).toBe(200);
  });
});

test.each([
  ['https://app.example.org', 'https://app.example.org'],
  ['https://APP.example.org:443/', 'https://app.example.org'],
  ['http://localhost:5173', 'http://localhost:5173'],
  ['http://[::1]:3000', 'http://[::1]:3000'],
  ['http://tauri.localhost', 'http://tauri.localhost'],
  ['tauri://localhost', 'tauri://localhost'],
  ['chrome-extension://abcdef', 'chrome-extension://abcdef'],
  ['https://münchen.example', 'https://xn--mnchen-3ya.example'],
])('an allowed origin is written as browsers write it: %s', (given, origin) => {
  expect([...parseOrigins([given])]).toEqual([origin]);
});

test.each([
  '*',
  'null',
  '',
  'app.example.org',
  'https://',
  'https://*.example.org',
  'https://app.example.org/path',
  'https://app.example.org?x',
  'https://user@app.example.org',
  'https://a.example https://b.example',
  'file:///tmp/page.html',
  'file://tmp',
  'http://app.example.org',
  'http://192.168.1.5:3000',
])('an origin that is not exact or not safe is refused: %j', (given) => {
  expect(() => parseOrigins([given])).toThrow(/is not an origin|could change the pages/);
});

describe('the cookie of the page', () => {
  test('is set by a sign-in link, once, and is hidden from scripts and other sites', async () => {
    await using home = await ServedHome.start();
    const link = (await home.newLink()).slice(home.url.length);
    const browser = new Caller(home.url, { 'sec-fetch-site': 'none' });
    const signedIn = await browser.get(`/${link}`);
    expect(signedIn.status).toBe(303);
    expect(signedIn.headers.get('set-cookie')).toMatch(
      new RegExp(`^throughline-${home.port}=.*; Path=/; HttpOnly; SameSite=Strict; Max-Age=\\d+$`),
    );
    expect((await browser.get(`/${link}`)).status).toBe(401);
    expect((await browser.get('//enter?code=guess')).status).toBe(401);
  });

  test('is accepted only with the headers that a browser sends for a page of this server', async () => {
    await using home = await ServedHome.start();
    const { headers } = await new Caller(home.url, {}).get(`/${(await home.newLink()).slice(home.url.length)}`);
    const cookie = (headers.get('set-cookie') ?? '').split(';')[0] as string;
    const create = (headers: Record<string, string>) =>
      new Caller(home.url, headers).post('/conversations', { key: 'mine' }).then(({ status }) => status);
    expect(await create({ cookie, 'sec-fetch-site': 'same-origin', origin: home.url })).toBe(200);
    expect(await create({ cookie, origin: home.url })).toBe(401);
    expect(await create({ cookie, 'sec-fetch-site': 'same-origin' })).toBe(401);
    expect(await create({ cookie, 'sec-fetch-site': 'none', origin: home.url })).toBe(401);
    expect(await create({ cookie })).toBe(401);
    const list = (given: Record<string, string>) =>
      new Caller(home.url, { cookie, ...given }).get('/conversations').then(({ status }) => status);
    expect(await list({ 'sec-fetch-site': 'same-origin' })).toBe(200);
    expect(await list({ 'sec-fetch-site': 'none' })).toBe(200);
    expect(await list({})).toBe(401);
    expect(await list({ 'sec-fetch-site': 'same-origin', cookie: `${cookie}; ${cookie}` })).toBe(401);
    expect(await list({ 'sec-fetch-site': 'same-origin', cookie: cookie.replace(/=\d/, '=9') })).toBe(401);
    expect(await list({ 'sec-fetch-site': 'same-origin', authorization: 'Bearer wrong' })).toBe(401);
    expect(await list({ 'sec-fetch-site': 'same-origin', 'throughline-owner': 'ann' })).toBe(403);
  });
});
