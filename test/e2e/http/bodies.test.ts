import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../faults/harness/until.ts';
import { read } from './support/caller.ts';
import { ServedHome, TOKEN } from './support/served-home.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

/** Posts a body unchanged, valid or not. */
async function send(
  home: ServedHome,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream,
  headers: Record<string, string> = JSON_TYPE,
) {
  const authorization = `Bearer ${TOKEN}`;
  const init = { method: 'POST', headers: { authorization, ...headers }, body, duplex: 'half' };
  const response = await fetch(`${home.url}/v1/conversations`, init as RequestInit);
  return read('POST', '/v1/conversations', response);
}

describe('a request is refused, and nothing is stored, for', () => {
  let home: ServedHome;
  beforeAll(async () => {
    home = await ServedHome.start();
  });
  afterAll(() => home[Symbol.asyncDispose]());
  afterEach(async () => {
    expect((await home.caller.ok('GET', '/conversations')).conversations).toEqual([]);
  });

  test.each([
    ['a body that is not JSON', '{"key":'],
    ['a list as the body', '[]'],
    ['a text as the body', '"key"'],
    ['null as the body', 'null'],
    ['an unknown field', '{"key":"a","colour":"red"}'],
    ['a field of the wrong type', '{"key":5}'],
    ['a key that is too long', JSON.stringify({ key: 'x'.repeat(513) })],
    ['control characters in a key', JSON.stringify({ key: 'a\u001b[31mb' })],
    ['an unpaired surrogate', '{"key":"\\ud800"}'],
    ['the field __proto__', '{"key":"a","__proto__":{"scopes":["admin"]}}'],
    ['the field __proto__ in an inner object', '{"key":"a","restore":{"__proto__":{"policy":"off"}}}'],
    ['the field constructor', '{"constructor":{"prototype":{"polluted":true}}}'],
    ['very deep nesting', `{"key":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['bytes that are not UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
  ])('%s', async (_, body) => {
    const { status, body: answer } = await send(home, body as string);
    expect({ status, code: answer.code }).toEqual({ status: 400, code: 'invalid' });
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  // An HTML form of any page can send the first three.
  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'application/json; charset=latin1',
  ])('a body of the type %s', async (type) => {
    expect(await send(home, '{"key":"a"}', { 'content-type': type })).toMatchObject({ status: 415 });
  });

  test.each(['%zz', '%', '%c3', 'a%ff'])('the malformed escape %s in a path', async (name) => {
    const authorization = `Bearer ${TOKEN}`;
    const init = { method: 'POST', headers: { authorization, ...JSON_TYPE }, body: '{"prompt":"Hello."}' };
    const path = `/v1/conversations/${name}/turns`;
    const { status, body } = await read('POST', path, await fetch(`${home.url}${path}`, init));
    expect([status, body]).toMatchObject([400, { code: 'invalid' }]);
  });

  test('a compressed body', async () => {
    const zipped = new Uint8Array(gzipSync('{"key":"a"}'));
    expect(await send(home, zipped, { ...JSON_TYPE, 'content-encoding': 'gzip' })).toMatchObject({
      status: 415,
      body: { detail: 'The body must not be compressed.' },
    });
  });

  test.each(['?limit=0', '?limit=10001', '?limit=x', '?limit=1&limit=2', '?colour=red', '?__proto__=1', '?before=1'])(
    'the query %s',
    async (query) => {
      expect((await home.caller.get(`/conversations${query}`)).body).toMatchObject({ status: 400, code: 'invalid' });
    },
  );
});

describe('the answer to a wrong request names the field and says what is expected', () => {
  let home: ServedHome;
  beforeAll(async () => {
    home = await ServedHome.start();
  });
  afterAll(() => home[Symbol.asyncDispose]());

  test.each<[string, string, object | undefined, string, string | undefined]>([
    ['POST', '/conversations/a/turns', {}, '"prompt" is missing.', 'It must be a text or a list.'],
    ['GET', '/search', undefined, '"q" is missing.', 'It must be a text.'],
    ['GET', '/search?q=a&limit=-1', undefined, '"limit" must be a whole number from 1 to 10000, not "-1".', undefined],
    ['GET', '/search?q=a&q=b', undefined, 'The parameter "q" is given twice.', undefined],
    [
      'POST',
      '/tasks',
      { tasks: [{}] },
      '"plan" is missing. "tasks" is not a field of this request.',
      'Known fields: plan, requestId.',
    ],
    [
      'GET',
      '/me?colour=red',
      undefined,
      '"colour" is not a parameter of this request.',
      'This request has no parameters.',
    ],
    ['POST', '/conversations', [], 'The body must be a JSON object.', undefined],
  ])('%s %s', async (method, path, body, detail, hint) => {
    const { status, body: answer } = await home.caller.ask(method, path, body);
    expect([status, answer.detail, answer.hint]).toEqual([400, detail, hint]);
  });
});

test('a body that is too large is refused before all of it is read, with and without a Content-Length', async () => {
  await using home = await ServedHome.start();
  const large = JSON.stringify({ title: 'x'.repeat(1_100_000) });
  expect(await send(home, large)).toMatchObject({ status: 413, body: { code: 'too_large' } });
  let sent = 0;
  const endless = new ReadableStream({
    pull(controller) {
      sent += 65_536;
      controller.enqueue(new Uint8Array(65_536).fill(0x20));
    },
  });
  // The server answers and closes the connection. A client that is still sending may see only that.
  const result = await send(home, endless).then(
    ({ status }) => status,
    () => 'connection closed',
  );
  expect([413, 'connection closed']).toContain(result);
  expect(sent).toBeLessThan(64_000_000); // the limit is 1 MiB; buffers between the two take more
});

test.each(['Content-Length: 100', 'Transfer-Encoding: chunked'])(
  'a body that is cut off (%s) is logged as a bad request, not as an error of the server',
  async (length) => {
    await using home = await ServedHome.start();
    const head = `POST /v1/conversations HTTP/1.1\r\nHost: 127.0.0.1:${home.port}\r\nAuthorization: Bearer ${TOKEN}\r\n`;
    const socket = connect(home.port, '127.0.0.1', () => {
      socket.write(`${head}Content-Type: application/json\r\n${length}\r\n\r\n1\r\n{\r\n`, () => socket.destroy());
    });
    await until('the request is logged', () =>
      home.log.some((line) => line.includes('"operation":"ensureConversation"')),
    );
    expect(home.log.filter((line) => JSON.parse(line).level >= 40)).toEqual([]);
    expect(home.metrics.text()).toContain('operation="ensureConversation",status="400"');
  },
);

test('malformed HTTP gets an error or a closed connection, and the server continues', async () => {
  await using home = await ServedHome.start();
  const garbage = [
    '\0\0\0',
    'GET / HTTP/1.1\r\n\r\n',
    'GET /v1/x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
    `GET /${'x'.repeat(99_999)}`,
  ];
  for (const bytes of garbage) {
    const answer = await new Promise<string>((resolve) => {
      let text = '';
      const socket = connect(home.port, '127.0.0.1', () => socket.write(bytes));
      socket.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
        if (/\r\n\r\n/.test(text)) socket.destroy();
      });
      socket.on('error', () => {}).on('close', () => resolve(text));
    });
    expect(answer).toMatch(/^HTTP\/1\.1 4(00|21|31)|^$/);
  }
  expect((await home.caller.get('//healthz')).status).toBe(200);
});

test('a prompt may be large, and its fields are kept as given', async () => {
  await using home = await ServedHome.start();
  await home.caller.ok('POST', '/conversations', { key: 'chat' });
  const prompt = [{ type: 'text', text: 'x'.repeat(2_000_000), constructor: 'kept', _meta: { toString: 1 } }];
  const { turn } = await home.caller.ok('POST', '/conversations/chat/turns', { prompt });
  expect(turn.prompt).toEqual(prompt);
  await home.caller.finished(turn);
});

describe('a conversation of large prompts', () => {
  const MIB = 1024 * 1024;
  let home: ServedHome;
  beforeAll(async () => {
    home = await ServedHome.start();
    await home.caller.ok('POST', '/conversations', { key: 'small' });
    const { turn } = await home.caller.ok('POST', '/conversations/small/turns', { prompt: 'Hello' });
    await home.caller.finished(turn);
    const small = await home.engine.export('small');
    const [record] = small.records;
    const numbers = Array.from({ length: 10 }, (_, i) => i + 1);
    const records = numbers.map((n) => ({
      ...record,
      n,
      prompt: [{ type: 'text', text: `${n % 10}`.repeat(7 * MIB) }],
    }));
    await home.engine.import({ ...small, records }, { key: 'large' });
  });
  afterAll(() => home[Symbol.asyncDispose]());

  test('is read in pages of at most two turns, until a page is empty', async () => {
    const found: number[] = [];
    for (let after = 0; ; after = found.at(-1) as number) {
      const { turns } = await home.caller.ok('GET', `/conversations/large/turns?after=${after}&limit=1000`);
      if (turns.length === 0) break;
      expect(turns.length).toBeLessThanOrEqual(2);
      found.push(...turns.map((turn: { n: number }) => turn.n));
    }
    expect(found).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test.each(['view', 'export'])('is too large for one answer (%s), and the hint names pages', async (what) => {
    const { status, body } = await home.caller.get(`/conversations/large/${what}`);
    expect({ status, ...body }).toMatchObject({
      status: 413,
      code: 'too_large',
      hint: expect.stringContaining('pages'),
    });
  });

  test('has a size limit for its sessions and receipts, too', async () => {
    for (const part of ['sessions', 'receipts'] as const) {
      await expect(home.engine[part]('small', { most: 100 })).rejects.toMatchObject({ code: 'too_large' });
      expect(await home.engine[part]('small', { most: 10_000 })).toHaveLength(1);
    }
  });

  test('is read and exported as a whole by the embedded engine', async () => {
    expect((await home.engine.show('large')).turns).toHaveLength(10);
    expect((await home.engine.export('large')).records).toHaveLength(10);
  });

  test('does not accept a prompt of more than 8 MiB', async () => {
    const { status, body } = await home.caller.post('/conversations/large/turns', { prompt: 'x'.repeat(8 * MIB) });
    expect({ status, ...body }).toMatchObject({
      status: 413,
      code: 'too_large',
      hint: expect.stringContaining('file'),
    });
  });
});
