// Which tokens, keys and servers the client and its server refuse, and with which errors.
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { connect } from '../../../src/client.ts';
import { RELOAD_HINT } from '../../../src/core/errors.ts';
import type { ProcessIdentity } from '../../../src/core/process.ts';
import { systemProcesses } from '../../../src/host/processes.ts';
import { open, ThroughlineError } from '../../../src/index.ts';
import { ServedHome, TOKEN } from '../http/support/served-home.ts';
import { refusedWith } from '../support/conversations.ts';

afterEach(() => vi.unstubAllEnvs());

async function errorOf(promise: Promise<unknown>): Promise<ThroughlineError> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ThroughlineError);
  return error as ThroughlineError;
}

/** A server that gives every request the same answer. */
async function serverThatAnswers(status: number, headers: Record<string, string>) {
  const server = createServer((_, response) => response.writeHead(status, headers).end('{}')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, [Symbol.dispose]: () => server.close() };
}

describe('a token', () => {
  test('that is wrong is refused, and the hint says where the right one is', async () => {
    await using home = await ServedHome.start();
    for (const promise of [connect({ url: home.url, token: 'x' }), open({ server: home.url, token: 'x' })]) {
      const { code, message, hint } = await errorOf(promise);
      expect({ code, message }).toEqual({
        code: 'refused',
        message: `The server at ${home.url} does not accept this token.`,
      });
      expect(hint).toMatch(/THROUGHLINE_TOKEN.*"token".*server\/token.*keys create/);
    }
  });

  test.each(['one\r\ntwo', 'one\n', 'schl\u00fcssel', 'a b'])(
    'with characters that no token has is refused: %j',
    async (token) => {
      await using home = await ServedHome.start();
      await refusedWith('invalid', connect({ url: home.url, token }), /character that is not allowed/);
      await refusedWith('invalid', open({ server: home.url, token }), /character that is not allowed/);
    },
  );

  test('is taken from the environment', async () => {
    await using served = await ServedHome.start();
    const home = join(served.path, 'elsewhere');
    await refusedWith('refused', open({ server: served.url, home }), /no token for this server/);
    vi.stubEnv('THROUGHLINE_TOKEN', TOKEN);
    const tl = await open({ server: served.url, home });
    expect(await tl.engine.list()).toEqual([]);
    await tl.close();
  });

  test('of the data home is sent only to the running server of that data home', async () => {
    const received: (string | undefined)[] = [];
    const server = createServer(({ headers }, response) => {
      received.push(headers.authorization);
      response.end('{}');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    await using served = await ServedHome.start();
    const directory = join(served.path, 'home', 'server');
    mkdirSync(directory, { mode: 0o700 });
    writeFileSync(join(directory, 'token'), `${'t'.repeat(43)}\n`, { mode: 0o600 });
    const writeAddress = (process: ProcessIdentity) =>
      writeFileSync(join(directory, 'address.json'), JSON.stringify({ url: served.url, socket: null, process }), {
        mode: 0o600,
      });
    const other = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const home = join(served.path, 'home');
    await refusedWith('refused', open({ server: other, home }), /no token for this server/);
    expect(received).toEqual([]);
    const self = systemProcesses.self();
    writeAddress({ ...self, started: 'earlier' }); // that server is gone: another process has its pid, and may have its port
    await refusedWith('refused', open({ server: served.url, home }), /no token for this server/);
    writeAddress(self);
    // This is the server of the data home. It gets the token from the file, which is another one here.
    await refusedWith('refused', open({ server: served.url, home }), /does not accept this token/);
    server.close();
  });

  test('is not sent over a network without TLS, nor to an invalid address', async () => {
    await refusedWith('refused', open({ server: 'http://192.0.2.1', token: 'x' }), /could read the token/);
    await refusedWith('refused', connect({ url: 'http://192.0.2.1', token: 'x' }), /could read the token/);
    for (const server of ['ftp://127.0.0.1', 'nonsense', 'https://a.example/path', 'unix:']) {
      await refusedWith('invalid', open({ server, token: 'x' }), /not a valid server address/);
    }
  });
});

describe('a key', () => {
  test('acts only for its owner; the token acts for every owner', async () => {
    await using home = await ServedHome.start();
    const { key } = await home.key('ann', ['read', 'prompt']);
    const ann = await connect({ url: home.url, token: key });
    expect(ann.engine.owner).toBe('ann');
    await ann.conversation('notes').ensure();
    expect(ann.as('ann').engine.owner).toBe('ann');
    expect(() => ann.as('bob')).toThrow(expect.objectContaining({ code: 'refused' }));
    expect(() => ann.as('bob')).toThrow(/acts for "ann" only, not for "bob"/);
    await refusedWith(
      'refused',
      connect({ url: home.url, token: key, owner: 'bob' }),
      /act for "ann" only, not for "bob"/,
    );
    const local = await connect({ url: home.url, token: TOKEN });
    expect(local.engine.owner).toBe('local');
    expect(await local.engine.list()).toEqual([]);
    expect(await local.as('ann').engine.list()).toHaveLength(1);
    expect(() => local.engine.as('ann', 'somebody')).toThrow(/by the token or key/);
    const zoe = await connect({ url: home.url, token: TOKEN, owner: 'Zoë' });
    expect(zoe.engine.owner).toBe('Zoë');
    for (const client of [ann, local, zoe]) await client.close();
  });

  test('without a scope is refused with the name of the scope that it needs', async () => {
    await using home = await ServedHome.start();
    const { key } = await home.key('ann', ['read']);
    const ann = await connect({ url: home.url, token: key });
    const notes = ann.conversation('notes');
    await refusedWith('refused', notes.ensure(), /needs the scope "prompt"/);
    await refusedWith('refused', notes.ask('Hello.'), /needs the scope "prompt"/);
    await home.engine.as('ann').ensure({ key: 'notes' });
    expect((await notes.show()).turns).toEqual([]); // reading needs no more than the scope to read
    await ann.close();
  });
});

describe('a server', () => {
  test.each([
    ['3', /older than this client: it has interface 3, and this client has interface 4/, /on the server and restart/],
    ['5', /newer than this client: it has interface 5, and this client has interface 4/, /Update Throughline here/],
  ])('with interface %s is refused, and the hint says which side to update', async (version, what, todo) => {
    using other = await serverThatAnswers(404, { 'throughline-interface': version });
    const { code, message, hint } = await errorOf(connect({ url: other.url, token: 'x' }));
    expect(code).toBe('unreachable');
    expect(message).toMatch(what);
    expect(hint).toMatch(todo);
  });

  test.each([
    ['3', 'newer than the server', 'it has interface 4, and the server has interface 3.'],
    ['5', 'older than the server', 'it has interface 4, and the server has interface 5.'],
  ])('with interface %s tells a page to reload, because a page brings its own client', async (version, what, which) => {
    using other = await serverThatAnswers(404, { 'throughline-interface': version });
    vi.stubGlobal('location', { href: 'https://app.example.org/' });
    try {
      const { code, message, hint } = await errorOf(connect({ url: other.url, token: 'x' }));
      expect([code, hint]).toEqual(['unreachable', RELOAD_HINT]);
      expect(message).toBe(`This page is ${what} at ${other.url}: ${which}`);
    } finally {
      vi.unstubAllGlobals();
    }
  });

  test.each([200, 404, 502])('that is not a Throughline server and answers %i is unreachable', async (status) => {
    using other = await serverThatAnswers(status, {});
    await refusedWith(
      'unreachable',
      connect({ url: other.url, token: 'x' }),
      status === 502 ? /does not answer \(status 502\)/ : /not a Throughline server/,
    );
  });

  test('that does not exist is unreachable', async () => {
    using gone = await serverThatAnswers(200, {});
    gone[Symbol.dispose]();
    await refusedWith('unreachable', connect({ url: gone.url, token: 'x' }), /does not answer \(ECONNREFUSED\)/);
    await refusedWith('unreachable', open({ server: 'unix:/nowhere/at/all', token: 'x' }), /ENOENT/);
  });
});

describe('a client of a server', () => {
  test('cannot give settings or a relative directory', async () => {
    await using home = await ServedHome.start();
    await refusedWith(
      'refused',
      open({ server: home.url, token: TOKEN, settings: {} }),
      /"settings" cannot be used together with "server"/,
    );
    const tl = await open({ server: home.url, token: TOKEN });
    await refusedWith('invalid', tl.conversation('chat', { cwd: 'here' }).ensure(), /"here" is not absolute/);
    const { reply, receipt } = await tl.conversation('chat').ask('The codeword is osprey.');
    expect([reply, receipt.rung]).toEqual(['Noted: The codeword is osprey.', 'new']);
    await tl.close();
  });
});
