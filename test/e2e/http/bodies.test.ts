import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../faults/harness/until.ts';
import { read } from './support/caller.ts';
import { ServedHome, TOKEN } from './support/served-home.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

/** A body as it is, whatever it is. */
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

describe('what is not understood is refused, and nothing is stored', () => {
  let home: ServedHome;
  beforeAll(async () => {
    home = await ServedHome.start();
  });
  afterAll(() => home[Symbol.asyncDispose]());

  test.each([
    ['no JSON', '{"key":'],
    ['a list', '[]'],
    ['a text', '"key"'],
    ['nothing', 'null'],
    ['an unknown field', '{"key":"a","colour":"red"}'],
    ['a wrong type', '{"key":5}'],
    ['a key that is too long', JSON.stringify({ key: 'x'.repeat(513) })],
    ['control characters in a key', JSON.stringify({ key: 'a\u001b[31mb' })],
    ['half a character', '{"key":"\\ud800"}'],
    ['a name that reaches the prototype', '{"key":"a","__proto__":{"scopes":["admin"]}}'],
    ['one deep inside', '{"key":"a","restore":{"__proto__":{"policy":"off"}}}'],
    ['another such name', '{"constructor":{"prototype":{"polluted":true}}}'],
    ['a great depth', `{"key":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['bytes that are no UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
  ])('%s', async (_, body) => {
    const { status, body: answer } = await send(home, body as string);
    expect({ status, code: answer.code }).toEqual({ status: 400, code: 'invalid' });
    expect((await home.caller.ok('GET', '/conversations')).conversations).toEqual([]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'application/json; charset=latin1',
  ])('a body of the type %s, which a form of any page could send', async (type) => {
    expect(await send(home, '{"key":"a"}', { 'content-type': type })).toMatchObject({ status: 415 });
  });

  test.each(['%zz', '%', '%c3', 'a%ff'])('the malformed escape %s in a path', async (name) => {
    const authorization = `Bearer ${TOKEN}`;
    const init = { method: 'POST', headers: { authorization, ...JSON_TYPE }, body: '{"prompt":"Hello."}' };
    const path = `/v1/conversations/${name}/turns`;
    const { status, body } = await read('POST', path, await fetch(`${home.url}${path}`, init));
    expect([status, body]).toMatchObject([400, { code: 'invalid' }]);
  });

  test('a body that is compressed', async () => {
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

test('a body that is too large is refused before it is read, whether it says so or not', async () => {
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
  const refused = await send(home, endless).then(
    ({ status }) => status,
    () => 'cut off',
  );
  expect([413, 'cut off']).toContain(refused);
  expect(sent).toBeLessThan(64_000_000);
});

test.each(['Content-Length: 100', 'Transfer-Encoding: chunked'])(
  'a body that is cut off (%s) is no fault of the server, and not logged as one',
  async (length) => {
    await using home = await ServedHome.start();
    const head = `POST /v1/conversations HTTP/1.1\r\nHost: 127.0.0.1:${home.port}\r\nAuthorization: Bearer ${TOKEN}\r\n`;
    const socket = connect(home.port, '127.0.0.1', () => {
      socket.write(`${head}Content-Type: application/json\r\n${length}\r\n\r\n1\r\n{\r\n`, () => socket.destroy());
    });
    await until('it has been logged', () => home.log.some((line) => line.includes('"operation":"ensureConversation"')));
    expect(home.log.filter((line) => JSON.parse(line).level >= 40)).toEqual([]);
    expect(home.metrics.text()).toContain('operation="ensureConversation",status="400"');
  },
);

test('what is not HTTP is not understood, and hurts nobody', async () => {
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

  test('is read in pages, each of which is short, up to an empty one', async () => {
    const found: number[] = [];
    for (let after = 0; ; after = found.at(-1) as number) {
      const { turns } = await home.caller.ok('GET', `/conversations/large/turns?after=${after}&limit=1000`);
      if (turns.length === 0) break;
      expect(turns.length).toBeLessThanOrEqual(2);
      found.push(...turns.map((turn: { n: number }) => turn.n));
    }
    expect(found).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test.each(['view', 'export'])('is too large to be given whole (%s), and the refusal says how else', async (what) => {
    const { status, body } = await home.caller.get(`/conversations/large/${what}`);
    expect({ status, ...body }).toMatchObject({
      status: 413,
      code: 'too_large',
      hint: expect.stringContaining('pages'),
    });
  });

  test('a lineage is held to a bound as well', async () => {
    for (const part of ['sessions', 'receipts'] as const) {
      await expect(home.engine[part]('small', { most: 100 })).rejects.toMatchObject({ code: 'too_large' });
      expect(await home.engine[part]('small', { most: 10_000 })).toHaveLength(1);
    }
  });

  test('is whole on the data home itself', async () => {
    expect((await home.engine.show('large')).turns).toHaveLength(10);
    expect((await home.engine.export('large')).records).toHaveLength(10);
  });

  test('takes no prompt of more than 8 MiB', async () => {
    const { status, body } = await home.caller.post('/conversations/large/turns', { prompt: 'x'.repeat(8 * MIB) });
    expect({ status, ...body }).toMatchObject({
      status: 413,
      code: 'too_large',
      hint: expect.stringContaining('file'),
    });
  });
});
