import { expect, test } from 'vitest';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { claudeVariables, environmentIn } from './environment.ts';

test('Claude gets the variables that its login needs, and nothing else of ours', () => {
  const ours = {
    ANTHROPIC_API_KEY: 'a',
    CLAUDE_CONFIG_DIR: 'b',
    https_proxy: 'c',
    NODE_EXTRA_CA_CERTS: 'd',
    AWS_SECRET_ACCESS_KEY: 'no',
    GOOGLE_APPLICATION_CREDENTIALS: 'no',
    GITHUB_TOKEN: 'no',
    OPENAI_API_KEY: 'no',
    DATABASE_URL: 'no',
    // of a Claude that started us
    CLAUDE_CODE_ENTRYPOINT: 'no',
    CLAUDE_CODE_SESSION_ID: 'no',
    CLAUDECODE: 'no',
  };
  expect(Object.keys(claudeVariables(ours))).toEqual([
    'ANTHROPIC_API_KEY',
    'CLAUDE_CONFIG_DIR',
    'https_proxy',
    'NODE_EXTRA_CA_CERTS',
  ]);
});

test('Claude gets the keys of a cloud only when it uses that cloud', () => {
  const ours = { AWS_PROFILE: 'a', GOOGLE_CLOUD_PROJECT: 'b', AZURE_CLIENT_ID: 'c' };
  expect(claudeVariables({ ...ours, CLAUDE_CODE_USE_BEDROCK: '1' })).toHaveProperty('AWS_PROFILE');
  expect(claudeVariables({ ...ours, CLAUDE_CODE_USE_BEDROCK: '1' })).not.toHaveProperty('GOOGLE_CLOUD_PROJECT');
  expect(claudeVariables({ ...ours, CLAUDE_CODE_USE_VERTEX: '1' })).toHaveProperty('GOOGLE_CLOUD_PROJECT');
  expect(claudeVariables({ ...ours, CLAUDE_CODE_USE_FOUNDRY: '1' })).toHaveProperty('AZURE_CLIENT_ID');
});

test('the config directory is in the sandbox on request, unless the settings name another', () => {
  const sandbox = { state: '/sandboxes/1/state' } as OpenSandbox;
  expect(environmentIn(sandbox, {}, {}, 'sandbox').CLAUDE_CONFIG_DIR).toBe('/sandboxes/1/state/claude');
  expect(environmentIn(sandbox, {}, { CLAUDE_CONFIG_DIR: '/x' }, 'sandbox').CLAUDE_CONFIG_DIR).toBe('/x');
  expect(environmentIn(sandbox, {}, {}, 'user')).not.toHaveProperty('CLAUDE_CONFIG_DIR');
});

test('background work and shared memory are off, unless the settings switch them on', () => {
  const sandbox = { state: '/sandboxes/1/state' } as OpenSandbox;
  const ambient = { CLAUDE_CODE_DISABLE_AUTO_MEMORY: '0' };
  const names = ['CLAUDE_CODE_DISABLE_BACKGROUND_TASKS', 'CLAUDE_CODE_DISABLE_AUTO_MEMORY'];
  for (const name of names) {
    expect(environmentIn(sandbox, ambient, {}, 'user')[name]).toBe('1');
    expect(environmentIn(sandbox, {}, { [name]: '0' }, 'user')[name]).toBe('0');
  }
});
