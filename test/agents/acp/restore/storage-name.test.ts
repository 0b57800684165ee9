// The name of an agent's storage: agents with the same name share their sessions.
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

interface Options {
  /** The name that the agent reports. */
  readonly reportedName?: string;
  readonly command?: readonly string[];
}

const nameOf = (
  knownAs: string | null,
  env: Record<string, string>,
  { reportedName = 'unknown', command = ['program'] }: Options = {},
) => storageName({ knownAs, command, env }, reportedName, sandboxAt(home));

test('an agent has one storage for each home, also if a symbolic link leads to the home', async () => {
  mkdirSync(join(home, 'real'));
  symlinkSync(join(home, 'real'), join(home, 'link'));
  const inHome = (folder: string) => nameOf('codex', { HOME: join(home, folder) });
  expect(await inHome('link')).toBe(await inHome('real'));
  expect(await inHome('other')).not.toBe(await inHome('real'));
  expect(await nameOf('pi', { HOME: join(home, 'real') })).not.toBe(await inHome('real'));
});

test('an agent that is configured by its command is recognised by the name that it reports', async () => {
  const env = { HOME: home };
  expect(await nameOf(null, env, { reportedName: 'codex-acp', command: ['/opt/codex'] })).toBe(
    await nameOf('codex', env),
  );
  expect(await nameOf(null, env, { reportedName: '@agentclientprotocol/claude-agent-acp' })).toBe(
    await nameOf('claude-code', env),
  );
  expect(await nameOf(null, env, { reportedName: 'own', command: ['a'] })).toBe(
    await nameOf(null, env, { reportedName: 'own', command: ['b'] }),
  );
  expect(await nameOf(null, env, { command: ['a'] })).not.toBe(await nameOf(null, env, { command: ['b'] }));
});

test('a variable that names the folder of the sessions takes precedence over the home', async () => {
  const folder = { CODEX_HOME: join(home, 'there') };
  expect(await nameOf('codex', { HOME: join(home, 'one'), ...folder })).toBe(
    await nameOf('codex', { HOME: join(home, 'two'), ...folder }),
  );
  expect(await nameOf('codex', { HOME: home, ...folder })).not.toBe(await nameOf('codex', { HOME: home }));
});

test('Claude has the same storage with and without ACP', async () => {
  for (const env of [{ HOME: home }, { HOME: home, CLAUDE_CONFIG_DIR: join(home, 'config') }]) {
    expect(await nameOf('claude-code', env)).toBe((await storageIn(sandboxAt(home), env)).name);
  }
});
