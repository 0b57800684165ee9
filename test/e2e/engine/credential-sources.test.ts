import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { credentialsOf, environmentFor } from '../../../src/compose-credentials.ts';

const base = mkdtempSync(join(tmpdir(), 'throughline-credentials-'));
afterAll(() => rmSync(base, { recursive: true, force: true }));
afterEach(() => vi.unstubAllEnvs());

const claudeCredentials = (sources: Parameters<typeof credentialsOf>[1]) => {
  const credentials = credentialsOf('claude', sources, { base, given: undefined });
  return credentials ?? expect.unreachable('no credentials');
};

test('values are read from variables and files at every call, and without an owner the files of owners are left out', async () => {
  vi.stubEnv('OUR_KEY', 'one');
  writeFileSync(join(base, 'ann'), 'two\r\n');
  const credentials = claudeCredentials({ KEY: { env: 'OUR_KEY' }, OWN: { file: '{owner}' }, '~/.f': { file: 'ann' } });
  expect(credentials.perOwner).toBe(true);
  expect(await credentials.of('ann')).toEqual({ KEY: 'one', OWN: 'two', '~/.f': 'two\r\n' });
  vi.stubEnv('OUR_KEY', 'three');
  expect(await credentials.of(null)).toEqual({ KEY: 'three', '~/.f': 'two\r\n' });
  expect(credentialsOf('claude', undefined, { base, given: undefined })).toBeNull();
});

test.each([
  ['a variable that is not set', { KEY: { env: 'NOT_SET_HERE' } }, /the variable NOT_SET_HERE is not set/],
  ['an empty file', { KEY: { file: 'empty' } }, /empty is empty/],
  ['a folder', { KEY: { file: '.' } }, /cannot be read \(EISDIR\)/],
  ['a zero byte', { KEY: { file: 'zero' } }, /the value of KEY has a zero byte/],
  ['a large file', { KEY: { file: 'large' } }, /more than 65536 bytes/],
])('%s is refused, and the value is not shown', async (_, sources, why) => {
  writeFileSync(join(base, 'empty'), '\n');
  writeFileSync(join(base, 'zero'), 'secret-value\0');
  writeFileSync(join(base, 'large'), 'secret-value'.repeat(10_000));
  const error = await claudeCredentials(sources)
    .of('ann')
    .catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'agent_unavailable', message: expect.stringMatching(why) });
  expect(String((error as Error).message)).not.toContain('secret-value');
});

test('an agent with credentials gets the proxy of this process, but not its login', () => {
  vi.stubEnv('ANTHROPIC_API_KEY', 'ours');
  vi.stubEnv('HTTPS_PROXY', 'http://proxy');
  expect(environmentFor(null)).toMatchObject({ ANTHROPIC_API_KEY: 'ours', HTTPS_PROXY: 'http://proxy' });
  const environment = environmentFor(claudeCredentials({ KEY: { env: 'OUR_KEY' } }));
  expect(environment).toMatchObject({ HTTPS_PROXY: 'http://proxy' });
  expect(environment).not.toHaveProperty('ANTHROPIC_API_KEY');
});
