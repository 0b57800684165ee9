import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { storageName } from '../../../../src/agents/acp/known/known.ts';
import { storageIn } from '../../../../src/agents/claude/transcript/locate.ts';
import { sandboxAt } from '../../../contracts/agent-sandbox.ts';

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
) => storageName({ knownAs, command, env }, called, sandboxAt(home));

test('one agent with one home has one storage, whatever it is called and whichever way leads there', async () => {
  mkdirSync(join(home, 'real'));
  symlinkSync(join(home, 'real'), join(home, 'link'));
  const at = (folder: string) => named('codex', { HOME: join(home, folder) });
  expect(await at('link')).toBe(await at('real'));
  expect(await at('other')).not.toBe(await at('real'));
  expect(await named('pi', { HOME: join(home, 'real') })).not.toBe(await at('real'));
});

test('an agent that is set by its command is recognised by the name that it gives itself', async () => {
  const env = { HOME: home };
  expect(await named(null, env, { called: 'codex-acp', command: ['/opt/codex'] })).toBe(await named('codex', env));
  expect(await named(null, env, { called: '@agentclientprotocol/claude-agent-acp' })).toBe(
    await named('claude-code', env),
  );
  expect(await named(null, env, { called: 'own', command: ['a'] })).toBe(
    await named(null, env, { called: 'own', command: ['b'] }),
  );
  expect(await named(null, env, { command: ['a'] })).not.toBe(await named(null, env, { command: ['b'] }));
});

test('a variable that names the folder of sessions counts more than the home', async () => {
  const there = { CODEX_HOME: join(home, 'there') };
  expect(await named('codex', { HOME: join(home, 'one'), ...there })).toBe(
    await named('codex', { HOME: join(home, 'two'), ...there }),
  );
  expect(await named('codex', { HOME: home, ...there })).not.toBe(await named('codex', { HOME: home }));
});

test('Claude’s sessions are the same with and without the protocol', async () => {
  for (const env of [{ HOME: home }, { HOME: home, CLAUDE_CONFIG_DIR: join(home, 'config') }]) {
    expect(await named('claude-code', env)).toBe((await storageIn(sandboxAt(home), env)).name);
  }
});
