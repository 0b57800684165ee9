import { type IncomingHttpHeaders, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { Scope } from '../../../src/core/key.ts';
import { BASE_PATH, OPERATIONS, type Operation } from '../../../src/wire/operations.ts';
import { Caller } from './support/caller.ts';
import { DOCUMENT } from './support/conform.ts';
import { ServedHome, TOKEN } from './support/served-home.ts';

const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };

describe('by which name', () => {
  test.each(['evil.example', 'evil.example:80', '127.0.0.1', 'localhost', '127.0.0.1.nip.io', '[::1]', ''])(
    'a page that had the name "%s" pointed here learns nothing, whatever it knows',
    async (host) => {
      await using home = await ServedHome.start();
      for (const path of ['/v1/conversations', '/healthz', '/', '/openapi.json', '/enter?code=x']) {
        const name = host === '127.0.0.1' || host === 'localhost' ? `${host}:${home.port + 1}` : host;
        const { status, text } = await raw(home, path, { host: name, ...AUTHORIZED });
        expect({ path, status }).toEqual({ path, status: name === '' ? 400 : 421 });
        expect(text).not.toContain('conversations":');
      }
    },
  );

  test('every name of loopback is ours, and through the socket only "localhost"', async () => {
    await using home = await ServedHome.start();
    for (const name of ['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]']) {
      expect((await raw(home, '/v1/usage', { host: `${name}:${home.port}`, ...AUTHORIZED })).status).toBe(200);
    }
    const bySocket = (host: string) => raw(home, '/v1/usage', { host, ...AUTHORIZED }, home.socket);
    expect((await bySocket('localhost')).status).toBe(200);
    expect((await bySocket(`127.0.0.1:${home.port}`)).status).toBe(421);
  });

  test('the socket needs the token as well', async () => {
    await using home = await ServedHome.start();
    expect((await raw(home, '/v1/usage', { host: 'localhost' }, home.socket)).status).toBe(401);
  });
});

test('behind TLS it is called by one name, takes keys and not the token, and its cookie is for https', async () => {
  await using home = await ServedHome.start({ server: { publicUrl: 'https://agents.example.org' } });
  const { key } = await home.key('ann', ['read']);
  const ask = (host: string, given: string) => raw(home, '/v1/agents', { host, authorization: `Bearer ${given}` });
  expect((await ask('agents.example.org', key)).status).toBe(200);
  expect((await ask('agents.example.org', TOKEN)).status).toBe(401);
  expect((await ask(`127.0.0.1:${home.port}`, key)).status).toBe(421);
  const link = home.newLink();
  expect(link).toMatch(/^https:\/\/agents\.example\.org\/enter\?code=/);
  const entered = await raw(home, link.slice('https://agents.example.org'.length), { host: 'agents.example.org' });
  expect(entered).toMatchObject({ status: 303, headers: { 'set-cookie': [expect.stringMatching(/; Secure$/)] } });
});

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
    expect({ status, code: body.code }).toEqual({ status: 403, code: 'forbidden' });
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
    expect(entered.headers.get('set-cookie')).toMatch(/; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/);
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
    for (const { method, path } of Object.values<Operation>(OPERATIONS)) {
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
      for (const operation of Object.values<Operation>(OPERATIONS)) {
        if (operation.stream && operation.scope === scope) continue;
        const { status } = await caller.ask(operation.method, operation.path.replaceAll(/\{\w+\}/g, 'x'));
        expect({ path: operation.path, scope, refused: status === 403 }).toEqual({
          ...{ path: operation.path, scope, refused: operation.scope !== scope },
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
    await using home = await ServedHome.start({ server: { stream: { heartbeatMs: 20 } } });
    const { caller, id } = await home.key('ann', ['read', 'prompt']);
    await caller.ok('POST', '/conversations', { key: 'chat' });
    let seen = 0;
    for await (const _ of caller.events('/conversations/chat/events')) {
      seen += 1;
      await home.revoke('ann', id);
    }
    expect(seen).toBe(1);
  });
});

describe('whose', () => {
  test('the ids of another open nothing, in every route of the document', async () => {
    await using home = await ServedHome.start();
    const ann = (await home.key('ann', ['read', 'prompt', 'approve', 'admin'])).caller;
    const bob = (await home.key('bob', ['read', 'prompt', 'approve', 'admin'])).caller;
    const hers = await anns(ann);
    const before = await ann.ok('GET', '/conversations/hers/view');
    let tried = 0;
    for (const [path, methods] of Object.entries<Record<string, Described>>(DOCUMENT.paths)) {
      for (const [method, { requestBody }] of Object.entries(methods)) {
        for (const ids of [hers.byId, hers.byKey]) {
          if (!path.includes('{')) continue;
          const filled = path.slice(BASE_PATH.length).replaceAll(/\{(\w+)\}/g, (_, name) => ids[name] as string);
          const body =
            requestBody === undefined ? undefined : BODIES[requestBody.content['application/json'].schema.$ref];
          const { status, body: answer } = await bob.ask(method.toUpperCase(), filled, body);
          expect({ method, path, status, code: answer.code }).toEqual({ method, path, status: 404, code: 'not_found' });
          expect(JSON.stringify(answer)).not.toMatch(/osprey|secret title/);
          tried += 1;
        }
      }
    }
    expect(tried).toBeGreaterThan(25);
    for (const list of ['/conversations', '/conversations?q=osprey', '/search?q=osprey', '/usage', '/permissions']) {
      expect(Object.values(await bob.ok('GET', list)).filter(Array.isArray)).toEqual([[]]);
    }
    expect((await bob.get(`/permissions?conversation=${hers.byId.conversation}`)).status).toBe(404);
    expect(await ann.ok('GET', '/conversations/hers/view')).toEqual(before);
  });

  test('the same request id of two owners is two turns, and of one with another body a conflict', async () => {
    await using home = await ServedHome.start();
    const turns: string[] = [];
    for (const owner of ['ann', 'bob']) {
      const { caller } = await home.key(owner, ['read', 'prompt']);
      await caller.ok('POST', '/conversations', { key: 'chat' });
      const { body } = await caller.post('/conversations/chat/turns', { prompt: `of ${owner}`, requestId: 'same' });
      expect(body).toMatchObject({ duplicate: false, turn: { requestId: 'same' } });
      turns.push(body.turn.id);
      const other = await caller.post('/conversations/chat/turns', { prompt: 'something else', requestId: 'same' });
      expect(other).toMatchObject({ status: 409, body: { code: 'conflict' } });
    }
    expect(new Set(turns).size).toBe(2);
  });

  test('hints are of the own conversations only', async () => {
    await using home = await ServedHome.start();
    const [ann, bob] = [
      (await home.key('ann', ['read', 'prompt'])).caller,
      (await home.key('bob', ['read', 'prompt'])).caller,
    ];
    const hints = bob.events('/events');
    const first = hints.next();
    while (home.metrics.readers === 0) await new Promise(setImmediate);
    await ann.ok('POST', '/conversations', { key: 'hers' });
    const his = await bob.ok('POST', '/conversations', { key: 'his' });
    expect((await first).value?.data.conversation).toBe(his.id);
    await hints.return();
  });
});

test('who answered a question is in the record, and in the chain that shows any change', async () => {
  await using home = await ServedHome.start();
  const key = await home.key('local', ['read', 'prompt', 'approve']);
  await home.caller.ok('POST', '/conversations', { key: 'chat' });
  const { turn } = await home.caller.ok('POST', '/conversations/chat/turns', {
    prompt: '/ask May I?',
    permissions: 'ask',
  });
  for await (const { data } of home.caller.events('/conversations/chat/events')) {
    if (data.kind !== 'permission.asked') continue;
    await key.caller.ok('POST', `/permissions/${data.payload.id}`, { optionId: 'allow' });
    const late = await home.caller.post(`/permissions/${data.payload.id}`, { optionId: 'reject' });
    expect(late).toMatchObject({ status: 409 });
    break;
  }
  await home.caller.finished(turn);
  const by = `local by key ${key.id}`;
  expect((await home.caller.ok('GET', '/permissions?open=false')).permissions).toMatchObject([{ answeredBy: by }]);
  const events = [];
  for await (const event of home.engine.follow('chat')) {
    if (event.kind === 'permission.answered') events.push(event.payload);
    if (event.kind === 'turn.ended') break;
  }
  expect(events).toEqual([{ id: expect.any(String), optionId: 'allow', by }]);
  expect(await home.caller.ok('GET', '/conversations/chat/verify')).toEqual({ broken: null });
});

interface Described {
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: { $ref: string } } } };
}

/** A body that would be taken, for every operation that takes one. */
const BODIES: Record<string, object> = {
  '#/components/schemas/NewConversation': {},
  '#/components/schemas/NewTitle': { title: 'stolen' },
  '#/components/schemas/WarmUp': {},
  '#/components/schemas/NewFork': { turn: 1 },
  '#/components/schemas/Import': { exported: {} },
  '#/components/schemas/NewTurn': { prompt: 'hello' },
  '#/components/schemas/Retry': {},
  '#/components/schemas/PermissionAnswer': { optionId: 'allow' },
};

/** One of everything that Ann can have, with its ids under the names that the paths give them. */
async function anns(ann: Caller) {
  const { id } = await ann.ok('POST', '/conversations', { key: 'hers', title: 'secret title' });
  const { turn } = await ann.ok('POST', '/conversations/hers/turns', { prompt: 'The codeword is osprey' });
  await ann.finished(turn);
  await ann.ok('POST', '/conversations/hers/turns', { prompt: '/ask May I?', permissions: 'ask' });
  let permission = '';
  for await (const { data } of ann.events('/conversations/hers/events')) {
    if (data.kind !== 'permission.asked') continue;
    permission = data.payload.id;
    break;
  }
  const ids: Record<string, string> = { conversation: id, turn: turn.id, permission };
  return { byId: ids, byKey: { ...ids, conversation: 'hers' } as Record<string, string> };
}

/** With headers that no well-behaved client sends. */
function raw(home: ServedHome, path: string, headers: Record<string, string>, socketPath?: string) {
  return new Promise<{ status: number; text: string; headers: IncomingHttpHeaders }>((resolve, reject) => {
    const where = socketPath === undefined ? { host: '127.0.0.1', port: home.port } : { socketPath };
    const asked = request({ ...where, path, headers, setHost: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }));
    });
    asked.on('error', reject);
    asked.end();
  });
}
