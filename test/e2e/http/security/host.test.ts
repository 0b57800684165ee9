import { describe, expect, test } from 'vitest';
import { rawRequest } from '../support/raw-request.ts';
import { ServedHome, TOKEN } from '../support/served-home.ts';

const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };

describe('the Host header', () => {
  test.each([
    'evil.example',
    'evil.example:80',
    '127.0.0.1:OTHER_PORT',
    'localhost:OTHER_PORT',
    '127.0.0.1.nip.io',
    '[::1]',
    '',
  ])(
    'is refused if it is "%s", even with the token: a page could have pointed that name to this server',
    async (host) => {
      await using home = await ServedHome.start();
      for (const path of ['/v1/conversations', '/healthz', '/', '/openapi.json', '/enter?code=x']) {
        const name = host.replace('OTHER_PORT', String(home.port + 1));
        const { status, text } = await rawRequest(home, path, { host: name, ...AUTHORIZED });
        expect({ path, status }).toEqual({ path, status: name === '' ? 400 : 421 });
        expect(text).not.toContain('conversations":');
      }
    },
  );

  test('may be any name of loopback with the port, and over the socket only "localhost"', async () => {
    await using home = await ServedHome.start();
    for (const name of ['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]']) {
      expect((await rawRequest(home, '/v1/usage', { host: `${name}:${home.port}`, ...AUTHORIZED })).status).toBe(200);
    }
    const overSocket = (host: string) => rawRequest(home, '/v1/usage', { host, ...AUTHORIZED }, home.socket);
    expect((await overSocket('localhost')).status).toBe(200);
    expect((await overSocket(`127.0.0.1:${home.port}`)).status).toBe(421);
  });
});

test('requests over the socket need the token as well', async () => {
  await using home = await ServedHome.start();
  expect((await rawRequest(home, '/v1/usage', { host: 'localhost' }, home.socket)).status).toBe(401);
});

test('a server with a public URL accepts only that name, accepts keys but not the token, and sets a Secure cookie', async () => {
  await using home = await ServedHome.start({ server: { publicUrl: 'https://agents.example.org' } });
  const { key } = await home.key('ann', ['read']);
  const ask = (host: string, credentials: string) =>
    rawRequest(home, '/v1/agents', { host, authorization: `Bearer ${credentials}` });
  expect((await ask('agents.example.org', key)).status).toBe(200);
  expect((await ask('agents.example.org', TOKEN)).status).toBe(401);
  expect((await ask(`127.0.0.1:${home.port}`, key)).status).toBe(421);
  const link = await home.newLink();
  expect(link).toMatch(/^https:\/\/agents\.example\.org\/enter\?code=/);
  const signedIn = await rawRequest(home, link.slice('https://agents.example.org'.length), {
    host: 'agents.example.org',
  });
  expect(signedIn).toMatchObject({ status: 303, headers: { 'set-cookie': [expect.stringMatching(/; Secure$/)] } });
});
