import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { storageName } from '../../src/agents/acp/known/known.ts';
import { storageName as claudeStorageName } from '../../src/agents/claude/transcript/locate.ts';

let home: string;
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-storage-')));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

interface More {
  readonly called?: string;
  readonly command?: readonly string[];
}

const named = (
  knownAs: string | null,
  env: Record<string, string>,
  { called = 'unknown', command = ['program'] }: More = {},
) => storageName({ knownAs, command, env }, called, home);

test('one agent with one home has one storage, whatever it is called and whichever way leads there', () => {
  mkdirSync(join(home, 'real'));
  symlinkSync(join(home, 'real'), join(home, 'link'));
  const at = (folder: string) => named('codex', { HOME: join(home, folder) });
  expect(at('link')).toBe(at('real'));
  expect(at('other')).not.toBe(at('real'));
  expect(named('pi', { HOME: join(home, 'real') })).not.toBe(at('real'));
});

test('an agent that is set by its command is recognised by the name that it gives itself', () => {
  const env = { HOME: home };
  expect(named(null, env, { called: 'codex-acp', command: ['/opt/codex'] })).toBe(named('codex', env));
  expect(named(null, env, { called: '@agentclientprotocol/claude-agent-acp' })).toBe(named('claude-code', env));
  expect(named(null, env, { called: 'own', command: ['a'] })).toBe(named(null, env, { called: 'own', command: ['b'] }));
  expect(named(null, env, { command: ['a'] })).not.toBe(named(null, env, { command: ['b'] }));
});

test('a variable that names the folder of sessions counts more than the home', () => {
  const there = { CODEX_HOME: join(home, 'there') };
  expect(named('codex', { HOME: join(home, 'one'), ...there })).toBe(
    named('codex', { HOME: join(home, 'two'), ...there }),
  );
  expect(named('codex', { HOME: home, ...there })).not.toBe(named('codex', { HOME: home }));
});

test('Claude’s sessions are the same with and without the protocol', () => {
  for (const env of [{ HOME: home }, { HOME: home, CLAUDE_CONFIG_DIR: join(home, 'config') }]) {
    expect(named('claude-code', env)).toBe(claudeStorageName(env, home));
  }
});
