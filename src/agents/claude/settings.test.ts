import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { faultOf } from '../../../test/values/thrown.ts';
import { claudeCliAgent } from './cli/adapter.ts';
import { claudeSdkAgent } from './sdk/adapter.ts';
import { parseClaudeOptions } from './settings.ts';

test('options may be left out', () => {
  expect(parseClaudeOptions('a', {})).toEqual({ home: 'user', trustProject: false, mcpServers: [] });
  const all = {
    permissionMode: 'plan',
    settingSources: ['user'],
    home: 'sandbox',
    trustProject: true,
    window: 500_000,
    mcpServers: [{ name: 'notes', command: 'notes', args: ['-v'], env: [{ name: 'TOKEN', value: 'x' }] }],
  };
  expect(parseClaudeOptions('a', all)).toEqual(all);
});

test.each([
  [{ permisionMode: 'plan' }, /"agents\.a\.options\.permisionMode" is not known/],
  [{ permissionMode: 'yolo' }, /must be one of default, /],
  [{ settingSources: 'user' }, /must be a list of user, project, local/],
  [{ settingSources: ['managed'] }, /must be a list of/],
  [{ home: null }, /must be user or sandbox, not /],
  [{ trustProject: 1 }, /must be true or false/],
  [{ window: 0 }, /must be a whole number of tokens, not 0/],
  [{ window: '1m' }, /must be a whole number of tokens/],
  [{ mcpServers: [{ name: 'notes' }] }, /"agents\.a\.options\.mcpServers\[0\]\.command" must be a text/],
  [JSON.parse('{"__proto__": {}}'), /is not known/],
])('the message names the option and its valid values: %#', (options, message) => {
  const fault = faultOf(() => parseClaudeOptions('a', options));
  expect(fault?.code).toBe('invalid');
  expect(fault?.message).toMatch(message);
});

/** A folder with a Claude of this version; null: with none. */
function folderWith(version: string | null) {
  const folder = mkdtempSync(join(tmpdir(), 'throughline-claude-settings-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const install = (other: string) => {
    writeFileSync(join(folder, 'claude'), `#!/bin/sh\necho ${other}\n`);
    chmodSync(join(folder, 'claude'), 0o755);
  };
  if (version !== null) install(version);
  return { settings: { name: 'claude', env: { PATH: folder }, options: {}, installed: folder }, install };
}

test('Claude is looked for again when it was not found, and remembered when it was', async () => {
  const { settings, install } = folderWith(null);
  const agent = claudeCliAgent(settings);
  await expect(agent.traits()).rejects.toMatchObject({ code: 'agent_unavailable' });
  install('2.1.325');
  expect((await agent.traits()).version).toBe('2.1.325');
  install('2.1.326');
  expect((await agent.traits()).version).toBe('2.1.325');
});

test('a Claude that is installed by name while we run replaces the remembered one', async () => {
  const { settings, install } = folderWith('2.1.325');
  const installed = join(settings.installed, 'installed');
  mkdirSync(installed);
  const agent = claudeCliAgent({ ...settings, installed });
  expect((await agent.traits()).version).toBe('2.1.325');
  install('2.1.326');
  renameSync(installed, `${installed}.old`);
  mkdirSync(installed);
  expect((await agent.traits()).version).toBe('2.1.326');
});

test.each([claudeCliAgent, claudeSdkAgent])('a Claude that is too old is not available: %o', async (adapter) => {
  const { settings } = folderWith('1.0.128');
  await expect(adapter(settings).traits()).rejects.toMatchObject({
    code: 'agent_unavailable',
    message: expect.stringMatching(
      /^Claude 1\.0\.128 .* is too old\. Throughline needs 2\.1\.248 or newer: run "claude update" or/,
    ),
  });
});
