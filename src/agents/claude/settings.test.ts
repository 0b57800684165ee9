import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { TestSandboxes } from '../../../test/contracts/agent-sandbox.ts';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
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

const stop = (hook: object) => ({ hooks: { Stop: [{ hooks: [hook] }] } });

test.each([
  [{ permisionMode: 'plan' }, /"agents\.a\.options\.permisionMode" is not known/],
  [{ permissionMode: 'yolo' }, /must be one of default, /],
  [{ settingSources: 'user' }, /settingSources" must be a list/],
  [{ settingSources: ['managed'] }, /settingSources\[0\]" must be one of user, project, local/],
  [{ home: null }, /home" must be one of user, sandbox, not /],
  [{ trustProject: 1 }, /must be true or false/],
  [{ window: 0 }, /must be a whole number of tokens, not 0/],
  [{ window: '1m' }, /must be a whole number of tokens/],
  [{ mcpServers: [{ name: 'notes' }] }, /"agents\.a\.options\.mcpServers\[0\]\.command" must be a non-empty text/],
  [{ agents: { a: { prompt: 'x' } } }, /options\.agents\.a\.description" must be a non-empty text/],
  [{ additionalDirectories: ['x'] }, /must be a list of absolute paths/],
  [{ hooks: { PreToolUs: [] } }, /hooks\.PreToolUs" is not known; known are PreToolUse, /],
  [stop({ type: 'comand' }), /hooks\.Stop\[0\]\.hooks\[0\]\.type" must be one of command, prompt, .*, not "comand"/],
  [stop({}), /hooks\[0\]\.type" must be one of command, /],
  [stop({ type: 'command', comand: 'x' }), /hooks\[0\]\.comand" is not known; known are type, command, /],
  [stop({ type: 'command' }), /hooks\[0\]\.command" must be a non-empty text/],
  [stop({ type: 'command', command: 'x', timeout: '10' }), /timeout" must be a number of seconds above 0, not "10"/],
  [stop({ type: 'http', url: 'http://127.0.0.1', headers: { 'x-key': 7 } }), /headers\.x-key" must be a text\.$/],
  [stop({ type: 'mcp_tool', server: 'notes' }), /hooks\[0\]\.tool" must be a non-empty text/],
  [{ systemPrompt: 'x' }, /an option of the Agent SDK that Throughline does not take\. Use "appendSystemPrompt"/],
  [JSON.parse('{"__proto__": {}}'), /is not known/],
])('the message names the option and its valid values: %#', (options, message) => {
  const fault = faultOf(() => parseClaudeOptions('a', options));
  expect(fault?.code).toBe('invalid');
  expect(fault?.message).toMatch(message);
});

test('a hook of every type is accepted with all its fields', () => {
  const hooks = [
    { type: 'command', command: 'check', args: ['', '-v'], timeout: 0.5, onFailure: 'block', async: false },
    { type: 'prompt', prompt: 'Is $ARGUMENTS safe?', model: 'haiku', continueOnBlock: true },
    { type: 'agent', prompt: 'Verify it.', if: 'Bash(git *)' },
    { type: 'http', url: 'http://127.0.0.1', headers: { 'x-key': '$KEY' }, allowedEnvVars: ['KEY'], once: true },
    {
      type: 'mcp_tool',
      server: 'notes',
      tool: 'add',
      input: { text: 'done' },
      statusMessage: 'Noting',
    },
  ];
  const options = { hooks: { PreToolUse: [{ matcher: '', hooks }] } };
  expect(parseClaudeOptions('a', options)).toMatchObject(options);
});

/** A folder with a Claude of this version; null: with none. */
function folderWith(version: string | null) {
  const folder = temporaryFolder();
  const install = (other: string) => {
    writeFileSync(join(folder, 'claude'), `#!/bin/sh\necho ${other}\n`);
    chmodSync(join(folder, 'claude'), 0o755);
  };
  if (version !== null) install(version);
  const clock = { now: () => 0, monotonic: () => 0 };
  return {
    settings: { name: 'claude', env: { PATH: folder }, options: {}, installed: folder, memory: folder, clock },
    install,
  };
}

const sandboxes = new TestSandboxes();
afterAll(() => sandboxes.dispose());

test('Claude is looked for again when it was not found, and remembered when it was', async () => {
  const { settings, install } = folderWith(null);
  const agent = claudeCliAgent(settings);
  await expect(agent.traits(await sandboxes.sandbox())).rejects.toMatchObject({ code: 'agent_unavailable' });
  install('2.1.325');
  expect((await agent.traits(await sandboxes.sandbox())).version).toBe('2.1.325');
  install('2.1.326');
  expect((await agent.traits(await sandboxes.sandbox())).version).toBe('2.1.325');
});

test('a Claude that is installed by name while we run replaces the remembered one', async () => {
  const { settings, install } = folderWith('2.1.325');
  const installed = join(settings.installed, 'installed');
  mkdirSync(installed);
  const agent = claudeCliAgent({ ...settings, installed });
  expect((await agent.traits(await sandboxes.sandbox())).version).toBe('2.1.325');
  install('2.1.326');
  renameSync(installed, `${installed}.old`);
  mkdirSync(installed);
  expect((await agent.traits(await sandboxes.sandbox())).version).toBe('2.1.326');
});

test.each([claudeCliAgent, claudeSdkAgent])('a Claude that is too old is not available: %o', async (adapter) => {
  const { settings } = folderWith('1.0.128');
  await expect(adapter(settings).traits(await sandboxes.sandbox())).rejects.toMatchObject({
    code: 'agent_unavailable',
    message: expect.stringMatching(
      /^Claude 1\.0\.128 .* is too old\. Throughline needs 2\.1\.248 or newer: run "claude update" or/,
    ),
  });
});
