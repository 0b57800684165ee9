import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { credentialsOf, environmentFor } from '../../../src/compose-credentials.ts';

const base = mkdtempSync(join(tmpdir(), 'throughline-credentials-'));
afterAll(() => rmSync(base, { recursive: true, force: true }));
afterEach(() => vi.unstubAllEnvs());

const of = (sources: Parameters<typeof credentialsOf>[1]) => {
  const credentials = credentialsOf('claude', sources, { base, given: undefined });
  return credentials ?? expect.unreachable('it has none');
};

test('values come from variables and files, as they are now; nobody’s own are among those that all share', async () => {
  vi.stubEnv('OUR_KEY', 'one');
  writeFileSync(join(base, 'ann'), 'two\r\n');
  const credentials = of({ KEY: { env: 'OUR_KEY' }, OWN: { file: '{owner}' }, '~/.f': { file: 'ann' } });
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
  const error = await of(sources)
    .of('ann')
    .catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'agent_unavailable', message: expect.stringMatching(why) });
  expect(String((error as Error).message)).not.toContain('secret-value');
});

test('an agent with credentials gets no login of ours, and still finds the network', () => {
  vi.stubEnv('ANTHROPIC_API_KEY', 'ours');
  vi.stubEnv('HTTPS_PROXY', 'http://proxy');
  expect(environmentFor(null)).toMatchObject({ ANTHROPIC_API_KEY: 'ours', HTTPS_PROXY: 'http://proxy' });
  const few = environmentFor(of({ KEY: { env: 'OUR_KEY' } }));
  expect(few).toMatchObject({ HTTPS_PROXY: 'http://proxy' });
  expect(few).not.toHaveProperty('ANTHROPIC_API_KEY');
});
