import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createListener, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { getCACertificates, setDefaultCACertificates, connect as tlsConnect } from 'node:tls';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { parseAllowed } from '../../core/sandbox/allowlist.ts';
import { AllowlistProxy, isPrivate, type KeptKey, type ProxyLimits, type ProxySettings } from './proxy.ts';

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let folder: string;
/** The port of the proxy. */
let ours: number;
let proxy: AllowlistProxy | null;
let seen: Seen[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'throughline-proxy-'));
  proxy = null;
  seen = [];
});
afterEach(() => {
  proxy?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function start(
  allow: string[],
  model: KeptKey | null = null,
  limits: Partial<ProxyLimits> = {},
  resolve?: ProxySettings['resolve'],
): Promise<void> {
  const entries = allow.map((entry) => parseAllowed(entry) ?? expect.fail(entry));
  proxy = new AllowlistProxy({ allow: entries, model, limits, ...(resolve && { resolve }) });
  const listener = createListener();
  await new Promise<void>((done) => listener.listen(0, '127.0.0.1', done));
  ours = (listener.address() as AddressInfo).port;
  proxy.adopt(listener);
}

/** Answers with a description of the request. */
const echo: RequestListener = async (request, response) => {
  const { method = '', url = '', headers } = request;
  const body = await text(request).catch(() => null);
  if (body === null) return; // the proxy hung up
  seen.push({ method, url, headers, body });
  response.writeHead(201, { 'x-from': 'upstream', 'keep-alive': 'timeout=7' }).end(`${method} ${url} ${body}`);
};

async function listening(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const upstream = () => listening(createServer({ keepAliveTimeout: 1_000 }, echo));

/** Sends bytes, and returns everything that comes back until the proxy closes the connection. */
async function raw(bytes: string): Promise<string> {
  const client = connect(ours);
  client.on('error', () => {});
  client.write(bytes);
  const chunks: Buffer[] = [];
  client.on('data', (chunk) => chunks.push(chunk));
  await new Promise((done) => client.once('close', done));
  return Buffer.concat(chunks).toString();
}

const get = (url: string, ...headers: string[]) =>
  raw([`GET ${url} HTTP/1.1`, 'Host: x', 'Connection: close', ...headers, '', ''].join('\r\n'));

/** The client end of a tunnel, once it is open. `answered`: what came instead of a tunnel. */
async function tunnel(to: string): Promise<{ client: Socket } | { answered: string }> {
  const client = connect({ port: ours, allowHalfOpen: true });
  onTestFinished(() => void client.destroy());
  client.on('error', () => {});
  client.write(`CONNECT ${to} HTTP/1.1\r\nHost: ${to}\r\n\r\n`);
  let answered = '';
  while (!answered.includes('\r\n\r\n')) {
    const chunk = client.read();
    if (chunk !== null) answered += chunk;
    else if (client.readableEnded || client.destroyed) return { answered };
    else await new Promise((done) => client.once('readable', done).once('close', done));
  }
  return answered.startsWith('HTTP/1.1 200') ? { client } : { answered: answered + (await text(client)) };
}

describe('a destination of the allowlist', () => {
  test('is reached by absolute-form requests, which are rebuilt before they are sent', async () => {
    const port = await upstream();
    await start([`127.0.0.1:${port}`]);
    const host = `127.0.0.1:${port}`;
    const answered = await raw(
      `POST http://${host}/a?b=c HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close, x-mine\r\nX-Mine: 1\r\n` +
        'Proxy-Authorization: Basic c2VjcmV0\r\nX-Kept: 2\r\nContent-Length: 4\r\n\r\nbody',
    );
    expect(answered).toMatch(/^HTTP\/1\.1 201 /);
    expect(answered).toContain('x-from: upstream');
    expect(answered).not.toContain('timeout=7');
    expect(answered).toContain('POST /a?b=c body');
    expect(seen).toEqual([expect.objectContaining({ method: 'POST', url: '/a?b=c', body: 'body' })]);
    expect(seen[0]?.headers).toMatchObject({ host, 'x-kept': '2', 'content-length': '4' });
    expect(Object.keys(seen[0]?.headers ?? {})).not.toEqual(expect.arrayContaining(['x-mine']));
    expect(seen[0]?.headers).not.toHaveProperty('proxy-authorization');
  });

  test('is reached by CONNECT, and one side can still send after the other has finished', async () => {
    const port = await listening(
      createListener({ allowHalfOpen: true }, async (server) => {
        const heard = await text(server);
        server.end(`heard ${heard}`);
      }),
    );
    await start([`127.0.0.1:${port}`]);
    const made = await tunnel(`127.0.0.1:${port}`);
    if (!('client' in made)) return expect.fail(made.answered);
    made.client.end('hello');
    expect(await text(made.client)).toBe('heard hello');
  });

  test('that cannot be reached is a 502 with the reason, and one that hangs up disconnects the client', async () => {
    const gone = createListener();
    const port = await listening(gone);
    await new Promise((done) => gone.close(done));
    const rude = await listening(createListener((server) => server.destroy()));
    await start([`127.0.0.1:${port}`, `127.0.0.1:${rude}`]);
    expect(await get(`http://127.0.0.1:${port}/`)).toMatch(/^HTTP\/1\.1 502 [\s\S]*ECONNREFUSED/);
    expect(await tunnel(`127.0.0.1:${port}`)).toEqual({ answered: expect.stringMatching(/ 502 [\s\S]*ECONNREFUSED/) });
    expect(await get(`http://127.0.0.1:${rude}/`)).toMatch(/^HTTP\/1\.1 502 /);
    const made = await tunnel(`127.0.0.1:${rude}`);
    if ('client' in made) expect(await text(made.client)).toBe('');
  });
});

/** Listens, and answers the head of every request with bytes. `then`: what it does after that; null: it stays open. */
function answering(bytes: string, then: ((server: Socket) => void) | null): Promise<number> {
  const listener = createListener((server) => {
    server.on('error', () => {});
    onTestFinished(() => void server.destroy());
    server.once('data', () => server.write(bytes, 'latin1', () => then?.(server)));
  });
  return listening(listener);
}

describe('a hostile destination', () => {
  const close = (server: Socket) => server.end();
  const reset = (server: Socket) => server.resetAndDestroy();
  const head = (status: string, ...headers: string[]) => `${[`HTTP/1.1 ${status}`, ...headers].join('\r\n')}\r\n\r\n`;
  const failed = /^HTTP\/1\.1 502 [\s\S]*cannot be reached/;
  const unusable = /^HTTP\/1\.1 502 [\s\S]*answered with/;

  test.each<[string, string, typeof close | null, RegExp]>([
    ['the status 099', head('099 x', 'Content-Length: 0'), null, unusable],
    ['the status 000', head('000 x'), close, unusable],
    ['the status 001 and a body', `${head('001 x', 'Content-Length: 3')}abc`, null, unusable],
    ['the status 1000', head('1000 x'), null, failed],
    ['a status with a sign', head('-20 x'), null, failed],
    ['no status', 'HTTP/1.1\r\n\r\n', null, failed],
    ['the status 999', head('999 x', 'Content-Length: 0'), close, /^HTTP\/1\.1 999 /],
    [
      'a switch of protocols that nobody asked for',
      `${head('101 x', 'Upgrade: x', 'Connection: upgrade')}abc`,
      null,
      unusable,
    ],
    ['101 without a protocol', head('101 x'), close, unusable],
    ['only hints', head('103 x', 'Link: </a>').repeat(50), close, failed],
    [
      'many hints, then an answer',
      `${head('100 x').repeat(500)}${head('200 x', 'Content-Length: 2')}ok`,
      close,
      /^HTTP\/1\.1 200 [\s\S]*ok$/,
    ],
    ['a header without a name', head('200 x', ': x'), null, failed],
    ['a header with a space in its name', head('200 x', 'a b: x'), null, failed],
    ['a header with a zero byte', head('200 x', 'a: \0'), null, failed],
    ['a header with a line break alone', head('200 x', 'a: b\rc: d'), null, failed],
    [
      'a header of bytes that are no text',
      head('200 x', 'a: \x80\xff', 'Content-Length: 0'),
      close,
      /^HTTP\/1\.1 200 /,
    ],
    ['a folded header', head('200 x', 'a: b\r\n c', 'Content-Length: 0'), close, /^HTTP\/1\.1 (200|502) /],
    ['a header of 40 KB', head('200 x', `a: ${'x'.repeat(40_000)}`), null, failed],
    ['thousands of headers', head('200 x', ...Array(20_000).fill('a:b')), null, failed],
    ['a header that never ends', `HTTP/1.1 200 x\r\na: ${'x'.repeat(100)}`, reset, failed],
    ['two lengths', `${head('200 x', 'Content-Length: 1', 'Content-Length: 2')}ab`, null, failed],
    [
      'a length and chunks',
      `${head('200 x', 'Content-Length: 1', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
      null,
      failed,
    ],
    ['an unknown length', `${head('200 x', 'Content-Length: x')}ab`, null, failed],
    [
      'trailers',
      `${head('200 x', 'Transfer-Encoding: chunked', 'Trailer: a')}1\r\nx\r\n0\r\na: b\r\n\r\n`,
      close,
      /^HTTP\/1\.1 200 /,
    ],
    ['trailers without chunks', head('200 x', 'Trailer: a', 'Content-Length: 0'), close, /^HTTP\/1\.1 200 /],
    [
      'a bad trailer',
      `${head('200 x', 'Transfer-Encoding: chunked')}0\r\na b: \0\r\n\r\n`,
      null,
      /^HTTP\/1\.1 200 |^$/,
    ],
    ['a bad chunk', `${head('200 x', 'Transfer-Encoding: chunked')}zz\r\n`, null, /^HTTP\/1\.1 200 |^$/],
    ['fewer bytes than it said', `${head('200 x', 'Content-Length: 10')}ab`, close, /^HTTP\/1\.1 200 |^$/],
    [
      'more bytes than it said',
      `${head('200 x', 'Content-Length: 1')}abcdef`,
      close,
      /^$|^HTTP\/1\.1 200 [\s\S]*\r\n\r\na$/,
    ],
    ['two answers', head('200 x', 'Content-Length: 0').repeat(2), null, /^HTTP\/1\.1 200 (?![\s\S]*HTTP)/],
    ['204 with a body', `${head('204 x', 'Content-Length: 3')}abc`, close, /^$|^HTTP\/1\.1 204 /],
    [
      '304 with chunks',
      `${head('304 x', 'Transfer-Encoding: chunked')}1\r\nx\r\n0\r\n\r\n`,
      close,
      /^$|^HTTP\/1\.1 304 /,
    ],
    ['a reset within the body', `${head('200 x', 'Content-Length: 10')}ab`, reset, /^HTTP\/1\.1 200 |^$/],
    ['a reset at once', '', reset, failed],
    ['nothing, and hangs up', '', close, failed],
    ['something that is not HTTP', '\x16\x03\x01\x02\x00\r\n', null, failed],
    ['HTTP/0.9', '<html></html>', close, failed],
    ['HTTP/2', 'HTTP/2.0 200 x\r\n\r\n', close, /^HTTP\/1\.1 (200|502) /],
    ['HTTP/1.0 without a length', 'HTTP/1.0 200 x\r\n\r\nabc', close, /^HTTP\/1\.1 200 [\s\S]*abc/],
    [
      'headers of its own connection',
      `${head('200 x', 'Connection: a, content-length', 'A: 1', 'Upgrade: h2c', 'Keep-Alive: timeout=-1', 'Content-Length: 0')}`,
      close,
      /^HTTP\/1\.1 200 /,
    ],
  ])('that answers with %s fails that request alone', async (_, bytes, then, expected) => {
    const [hostile, good] = [await answering(bytes, then), await upstream()];
    await start([`127.0.0.1:${hostile}`, `127.0.0.1:${good}`]);
    const tunnelled = await tunnel(`127.0.0.1:${hostile}`);
    if (!('client' in tunnelled)) return expect.fail(tunnelled.answered);
    tunnelled.client.write('GET / HTTP/1.1\r\n\r\n');
    expect(await get(`http://127.0.0.1:${hostile}/`)).toMatch(expected);
    // On connections that are kept, too: what is left of a bad answer belongs to nobody else.
    expect(await get(`http://127.0.0.1:${hostile}/`)).toMatch(expected);
    expect(await get(`http://127.0.0.1:${good}/after`)).toContain('GET /after');
  });

  test('whose name has no address is a 502', async () => {
    await start(['name.example:80'], null, {}, (_, done) => done(null, []));
    expect(await get('http://name.example/')).toMatch(failed);
    expect(await tunnel('name.example:80')).toEqual({ answered: expect.stringMatching(failed) });
  });

  test('whose name has an address that is none is a 502', async () => {
    await start(['name.example:80'], null, {}, (_, done) => done(null, [{ address: 'x', family: 7 }]));
    expect(await get('http://name.example/')).toMatch(failed);
    expect(await tunnel('name.example:80')).toEqual({ answered: expect.stringMatching(failed) });
  });
});

describe('everything else', () => {
  test('is refused, with the setting that would allow it', async () => {
    const port = await upstream();
    await start([`127.0.0.1:${port}`, '*.example.org']);
    const others = [`localhost:${port}`, `127.0.0.2:${port}`, '127.0.0.1:1', `[::1]:${port}`, 'example.org:443'];
    for (const to of [...others, '169.254.169.254:80', '1.1.1.1:443']) {
      const answered = await tunnel(to);
      expect(answered).toEqual({ answered: expect.stringContaining('HTTP/1.1 403') });
      expect(answered).toEqual({ answered: expect.stringContaining(`add "${to}" to "sandbox.allow"`) });
      if (!to.endsWith(':443')) expect(await get(`http://${to}/`)).toMatch(/^HTTP\/1\.1 403 [\s\S]*"sandbox\.allow"/);
    }
    expect(seen).toEqual([]);
  });

  test('includes an allowed name that resolves to a private address, at first or later', async () => {
    const port = await upstream();
    const private_ = { address: '127.0.0.1', family: 4 };
    let [answers, asked] = [[private_], 0];
    const resolve: ProxySettings['resolve'] = (_, done) => {
      asked += 1;
      done(null, answers);
    };
    const to = `name.example:${port}`;
    await start([to], null, {}, resolve);
    const refused = new RegExp(`^HTTP/1\\.1 403 [\\s\\S]*private address 127\\.0\\.0\\.1.*"127\\.0\\.0\\.1:${port}"`);
    expect(await get(`http://${to}/`)).toMatch(refused);
    expect(await tunnel(to)).toEqual({ answered: expect.stringMatching(refused) });
    // One private address among public ones is enough: we do not know which one would be used.
    answers = [{ address: '203.0.113.7', family: 4 }, private_];
    expect(await get(`http://${to}/`)).toMatch(refused);
    expect(asked).toBe(3);
    expect(seen).toEqual([]);
    // Names that are not allowed are not even resolved: a DNS request can carry data as well.
    expect(await get(`http://secret.name.example:${port}/`)).toMatch(/^HTTP\/1\.1 403/);
    expect(asked).toBe(3);
    proxy?.close();
    await start([to, `127.0.0.1:${port}`], null, {}, resolve);
    answers = [private_];
    expect(await get(`http://${to}/`)).toMatch(/^HTTP\/1\.1 201/);
    expect(asked).toBe(4);
    expect(seen[0]?.headers.host).toBe(to);
  });

  test('does not include "localhost", where the list has it', async () => {
    const port = await upstream();
    await start([`localhost:${port}`]);
    expect(await get(`http://localhost:${port}/`)).toMatch(/^HTTP\/1\.1 201/);
  });

  test.each([
    ['an origin-form request, when no key is kept', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['https by absolute-form', 'GET https://127.0.0.1/ HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['a file', 'GET file:///etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['a password', 'GET http://a:b@127.0.0.1/ HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['CONNECT without a port', 'CONNECT example.org HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['CONNECT with more than a name', 'CONNECT a@example.org:443 HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['a request without a host', 'GET http://127.0.0.1/ HTTP/1.1\r\n\r\n', 400],
    ['something that is not HTTP', '\x16\x03\x01\x02\x00\r\n', 400],
    [
      'two lengths',
      'POST http://127.0.0.1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      400,
    ],
    ['a header of 40 KB', `GET http://127.0.0.1/ HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`, 431],
    [
      'a thousand headers',
      `GET http://127.0.0.1/ HTTP/1.1\r\nHost: a\r\n${'A: 1234567890\r\n'.repeat(4_000)}\r\n`,
      431,
    ],
  ])('%s is refused', async (_, bytes, status) => {
    await start(['127.0.0.1:80']);
    expect(await raw(bytes)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });
});

test.each([
  ...['127.0.0.1', '127.9.9.9', '0.0.0.0', '10.1.2.3', '172.31.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1'],
  ...[
    '224.0.0.1',
    '255.255.255.255',
    '::1',
    '::',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    'fd00::1',
    'fe80::1',
    'ff02::1',
  ],
  ...['64:ff9b::7f00:1', '2002:7f00:1::', '::127.0.0.1'],
])('%s is private', (address) => {
  expect(isPrivate(address)).toBe(true);
});

test.each(['8.8.8.8', '1.1.1.1', '172.32.0.1', '223.255.255.255', '2606:4700::1111', '2a00:1450::1'])(
  '%s is public',
  (address) => {
    expect(isPrivate(address)).toBe(false);
  },
);

describe('a hostile client', () => {
  test('smuggles no request: the body of a GET stays a body, and both kinds of length together are refused', async () => {
    const port = await upstream();
    await start([`127.0.0.1:${port}`]);
    const inner = `GET http://127.0.0.1:${port}/evil HTTP/1.1\r\nHost: a\r\n\r\n`;
    const chunk = `${Buffer.byteLength(inner).toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
    const head = `GET http://127.0.0.1:${port}/good HTTP/1.1\r\nHost: a\r\nConnection: close\r\n`;
    expect(await raw(`${head}Transfer-Encoding: chunked\r\n\r\n${chunk}`)).toContain('HTTP/1.1 201');
    expect(seen.map(({ url, body }) => [url, body])).toEqual([['/good', inner]]);
    for (const more of ['Content-Length: 4\r\nTransfer-Encoding: chunked', 'Transfer-Encoding: chunked, identity']) {
      expect(await raw(`${head}${more}\r\n\r\n${chunk}`)).toMatch(/^HTTP\/1\.1 400/);
    }
    expect(seen).toHaveLength(1);
  });

  test('has every request of a connection checked separately', async () => {
    const port = await upstream();
    await start([`127.0.0.1:${port}`]);
    const one = (to: string) => `GET http://${to}/ HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`;
    const answered = await raw(one(`127.0.0.1:${port}`) + one('127.0.0.1:1') + one(`127.0.0.1:${port}`));
    expect(answered.match(/HTTP\/1\.1 \d+/g)?.slice(0, 2)).toEqual(['HTTP/1.1 201', 'HTTP/1.1 403']);
    // After a refusal the connection is closed: what follows is not read.
    expect(seen.length).toBeLessThanOrEqual(2);
    expect(seen.every(({ headers }) => headers.host === `127.0.0.1:${port}`)).toBe(true);
  });

  const close = (client: Socket) => client.end();
  const reset = (client: Socket) => client.resetAndDestroy();
  test.each<[string, (to: string) => string, typeof close]>([
    ['resets at once', () => '', reset],
    ['resets within a header', (to) => `GET http://${to}/ HTTP/1.1\r\nHost`, reset],
    ['resets within a body', (to) => `POST http://${to}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab`, reset],
    ['ends within a body', (to) => `POST http://${to}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab`, close],
    ['resets before the answer', (to) => `GET http://${to}/ HTTP/1.1\r\nHost: a\r\n\r\n`, reset],
    ['resets before its tunnel is made', (to) => `CONNECT ${to} HTTP/1.1\r\nHost: a\r\n\r\n`, reset],
    ['sends into a tunnel, and resets', (to) => `CONNECT ${to} HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n`, reset],
    ['is refused a tunnel, and resets', () => 'CONNECT a.example:1 HTTP/1.1\r\nHost: a\r\n\r\n', reset],
    [
      'asks for a tunnel with a body',
      (to) => `CONNECT ${to} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc`,
      close,
    ],
    ['asks for a tunnel to a port that is none', () => 'CONNECT 127.0.0.1:99999 HTTP/1.1\r\nHost: a\r\n\r\n', close],
    ['asks for a tunnel to nothing', () => 'CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n', close],
    [
      'asks for a tunnel behind a request',
      (to) => `GET http://${to}/ HTTP/1.1\r\nHost: a\r\n\r\nCONNECT ${to} HTTP/1.1\r\nHost: a\r\n\r\n`,
      close,
    ],
    ['names a port that is none', () => 'GET http://127.0.0.1:99999/ HTTP/1.1\r\nHost: a\r\n\r\n', close],
    ['names nothing', () => 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n', close],
    [
      'upgrades',
      (to) => `GET http://${to}/ HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc`,
      close,
    ],
    ['upgrades to HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', close],
    [
      'expects what nobody does',
      (to) => `POST http://${to}/ HTTP/1.1\r\nHost: a\r\nExpect: x\r\nContent-Length: 1\r\n\r\na`,
      close,
    ],
    [
      'expects an answer before its body',
      (to) => `POST http://${to}/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na`,
      close,
    ],
    [
      'sends trailers',
      (to) =>
        `POST http://${to}/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: b\r\n\r\n0\r\nb: c\r\n\r\n`,
      close,
    ],
    [
      'sends a bad chunk',
      (to) => `POST http://${to}/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
      close,
    ],
    ['sends bytes that are no text', (to) => `GET http://${to}/\xff HTTP/1.1\r\nHost: a\r\nA: \x80\xff\r\n\r\n`, close],
    [
      'names headers of its connection',
      (to) => `GET http://${to}/ HTTP/1.1\r\nHost: a\r\nConnection: host, content-length, ,\r\n\r\n`,
      close,
    ],
    ['has an unknown method', (to) => `EVIL http://${to}/ HTTP/1.1\r\nHost: a\r\n\r\n`, close],
    ['has no version', (to) => `GET http://${to}/\r\n\r\n`, close],
  ])('that %s fails that request alone', async (_, bytes, then) => {
    const port = await upstream();
    await start([`127.0.0.1:${port}`, '127.0.0.1:1']);
    const client = connect(ours);
    const closed = new Promise((done) =>
      client
        .on('error', () => {})
        .resume()
        .once('close', done),
    );
    client.write(bytes(`127.0.0.1:${port}`), 'latin1', () => then(client));
    await closed;
    expect(await get(`http://127.0.0.1:${port}/after`)).toContain('GET /after');
  });

  test('that sends nothing is disconnected', async () => {
    await start([], null, { idleMs: 400 });
    expect(await raw('')).toMatch(/^$|^HTTP\/1\.1 4/);
  });

  test('that sends half of a header is disconnected, long before one that sends nothing', async () => {
    await start([], null, { headerMs: 200 });
    expect(await raw('GET http://127.0.0.1/ HTT')).toMatch(/^$|^HTTP\/1\.1 4/);
  });

  test('whose tunnel is idle is disconnected, on both sides', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const port = await listening(
      createListener((server) =>
        server
          .on('error', () => {})
          .once('close', () => resolve())
          .resume(),
      ),
    );
    // Longer than a busy machine pauses us: the tunnel has to be made within this time.
    await start([`127.0.0.1:${port}`], null, { idleMs: 2_000 });
    const made = await tunnel(`127.0.0.1:${port}`);
    if (!('client' in made)) return expect.fail(made.answered);
    expect(await text(made.client)).toBe('');
    await closed;
  });

  test('gets only a limited number of connections', async () => {
    await start([], null, { connections: 2 });
    const open = [connect(ours), connect(ours)];
    onTestFinished(() => open.forEach((one) => void one.destroy()));
    await Promise.all(open.map((one) => new Promise((done) => one.once('connect', done))));
    expect(await raw('')).toBe('');
    open[0]?.destroy();
    await expect.poll(() => get('http://127.0.0.1/')).toContain('HTTP/1.1 403');
  });

  test('is disconnected when the proxy closes, also from tunnels', async () => {
    const port = await listening(createListener((server) => server.on('error', () => {}).resume()));
    await start([`127.0.0.1:${port}`]);
    const made = await tunnel(`127.0.0.1:${port}`);
    if (!('client' in made)) return expect.fail(made.answered);
    proxy?.close();
    proxy?.close();
    expect(await text(made.client)).toBe('');
    expect(await raw('')).toBe('');
  });
});

describe('the key of the model', () => {
  const kept = (url: string): KeptKey => ({ url: new URL(url), header: 'x-api-key', value: 'the real key' });

  test('is added by the proxy, replaces what the client sends, and goes only to the model', async () => {
    const [model, other] = [await upstream(), await upstream()];
    await start([`127.0.0.1:${other}`], kept(`http://127.0.0.1:${model}/base/`));
    const answered = await get('/v1/messages?x=1', 'X-Api-Key: mine', 'Authorization: Bearer mine', 'X-Other: 1');
    expect(answered).toContain('GET /base/v1/messages?x=1');
    expect(answered).not.toContain('real key');
    expect(seen[0]?.headers).toMatchObject({ host: `127.0.0.1:${model}`, 'x-api-key': 'the real key', 'x-other': '1' });
    expect(seen[0]?.headers).not.toHaveProperty('authorization');
    await get(`http://127.0.0.1:${other}/`, 'X-Api-Key: mine');
    expect(seen[1]?.headers['x-api-key']).toBe('mine');
    // With a key of its own, an agent could send everything to its own account there.
    expect(await get(`http://127.0.0.1:${model}/`, 'X-Api-Key: mine')).toMatch(/^HTTP\/1\.1 403/);
    expect(await tunnel(`127.0.0.1:${model}`)).toMatchObject({ answered: expect.stringMatching(/^HTTP\/1\.1 403/) });
    expect(seen).toHaveLength(2);
  });

  test.each(['/../x', '/v1/../../x', '/%2e%2e/x', '/v1/%2E%2E/..', '/\\..\\x', '//evil.example/x'])(
    'a request for %s stays within the path of the model',
    async (path) => {
      await start([], kept(`http://127.0.0.1:${await upstream()}/base`));
      await get(path);
      expect(seen.filter(({ url }) => !url.startsWith('/base/'))).toEqual([]);
    },
  );

  test('is not sent with TRACE, whose answer would contain it', async () => {
    const port = await upstream();
    await start([], { url: new URL(`http://127.0.0.1:${port}/base`), header: 'x-api-key', value: 'the-key' });
    const answered = await raw('TRACE /v1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(answered).toMatch(/^HTTP\/1\.1 405 /);
    expect(seen).toEqual([]);
  });

  test('is sent by TLS, to the server that the certificate names and to no other', async (context) => {
    const { key, cert } = certificate() ?? context.skip('there is no openssl');
    const before = getCACertificates('default');
    setDefaultCACertificates([...before, cert]);
    onTestFinished(() => setDefaultCACertificates(before));
    const port = await listening(createTlsServer({ key, cert }, echo));
    await start([`localhost:${port}`], kept(`https://localhost:${port}`));
    expect(await get('/v1/messages')).toMatch(/^HTTP\/1\.1 201/);
    expect(seen[0]?.headers).toMatchObject({ host: `localhost:${port}`, 'x-api-key': 'the real key' });

    // A client's own TLS goes through a tunnel untouched.
    const made = await tunnel(`localhost:${port}`);
    if (!('client' in made)) return expect.fail(made.answered);
    const inner = tlsConnect({ socket: made.client, servername: 'localhost', ca: cert });
    inner.write('GET /inner HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    expect(await text(inner)).toContain('GET /inner');

    proxy?.close();
    await start([], kept(`https://127.0.0.1:${port}`));
    expect(await get('/v1/messages')).toMatch(/^HTTP\/1\.1 502/);
    expect(seen).toHaveLength(2);
  });
});

/** For "localhost". Null: there is no openssl. */
function certificate(): { key: string; cert: string } | null {
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  const named = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  try {
    const made = ['req', '-x509', ...curve, '-nodes', '-keyout', key, '-out', cert, '-days', '2', ...named];
    execFileSync('openssl', made, { stdio: 'ignore' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
}
