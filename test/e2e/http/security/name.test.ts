import { describe, expect, test } from 'vitest';
import { rawRequest } from '../support/raw-request.ts';
import { ServedHome, TOKEN } from '../support/served-home.ts';

const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };

describe('by which name', () => {
  test.each(['evil.example', 'evil.example:80', '127.0.0.1', 'localhost', '127.0.0.1.nip.io', '[::1]', ''])(
    'a page that had the name "%s" pointed here learns nothing, whatever it knows',
    async (host) => {
      await using home = await ServedHome.start();
      for (const path of ['/v1/conversations', '/healthz', '/', '/openapi.json', '/enter?code=x']) {
        const name = host === '127.0.0.1' || host === 'localhost' ? `${host}:${home.port + 1}` : host;
        const { status, text } = await rawRequest(home, path, { host: name, ...AUTHORIZED });
        expect({ path, status }).toEqual({ path, status: name === '' ? 400 : 421 });
        expect(text).not.toContain('conversations":');
      }
    },
  );

  test('every name of loopback is ours, and through the socket only "localhost"', async () => {
    await using home = await ServedHome.start();
    for (const name of ['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]']) {
      expect((await rawRequest(home, '/v1/usage', { host: `${name}:${home.port}`, ...AUTHORIZED })).status).toBe(200);
    }
    const bySocket = (host: string) => rawRequest(home, '/v1/usage', { host, ...AUTHORIZED }, home.socket);
    expect((await bySocket('localhost')).status).toBe(200);
    expect((await bySocket(`127.0.0.1:${home.port}`)).status).toBe(421);
  });

  test('the socket needs the token as well', async () => {
    await using home = await ServedHome.start();
    expect((await rawRequest(home, '/v1/usage', { host: 'localhost' }, home.socket)).status).toBe(401);
  });
});

test('behind TLS it is called by one name, takes keys and not the token, and its cookie is for https', async () => {
  await using home = await ServedHome.start({ server: { publicUrl: 'https://agents.example.org' } });
  const { key } = await home.key('ann', ['read']);
  const ask = (host: string, given: string) =>
    rawRequest(home, '/v1/agents', { host, authorization: `Bearer ${given}` });
  expect((await ask('agents.example.org', key)).status).toBe(200);
  expect((await ask('agents.example.org', TOKEN)).status).toBe(401);
  expect((await ask(`127.0.0.1:${home.port}`, key)).status).toBe(421);
  const link = await home.newLink();
  expect(link).toMatch(/^https:\/\/agents\.example\.org\/enter\?code=/);
  const entered = await rawRequest(home, link.slice('https://agents.example.org'.length), {
    host: 'agents.example.org',
  });
  expect(entered).toMatchObject({ status: 303, headers: { 'set-cookie': [expect.stringMatching(/; Secure$/)] } });
});
