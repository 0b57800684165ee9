import { expect, test } from 'vitest';
import { ACP_DEFAULTS } from './options.ts';
import { profileOf } from './profiles.ts';

const claude = { name: '@agentclientprotocol/claude-agent-acp', version: '0.99.0' };
const mode = { ...ACP_DEFAULTS, noTools: { version: '1.2.3', mode: 'quiet' } };

test('a profile holds for the very version and program that it was proved on', () => {
  expect(profileOf(claude, ACP_DEFAULTS, {})).toMatchObject({ kind: 'meta' });
  for (const version of ['0.99.1', '0.98.9', '0.99.0-beta', '1.0.0', 'unknown']) {
    expect(profileOf({ ...claude, version }, ACP_DEFAULTS, {}), version).toBeNull();
  }
  expect(profileOf({ ...claude, name: 'claude-agent-acp' }, ACP_DEFAULTS, {})).toBeNull();
  expect(profileOf(claude, ACP_DEFAULTS, { CLAUDE_CODE_EXECUTABLE: '/another/claude' })).toBeNull();
});

test('so does one that a person has tried', () => {
  expect(profileOf({ name: 'any', version: '1.2.3' }, mode, {})).toEqual({ kind: 'mode', mode: 'quiet' });
  expect(profileOf({ name: 'any', version: '1.2.4' }, mode, {})).toBeNull();
});
