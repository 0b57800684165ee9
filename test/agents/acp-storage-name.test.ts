import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { storageName } from '../../src/agents/acp/storage-name.ts';
import { storageName as claudeStorageName } from '../../src/agents/claude/storage-name.ts';

let home: string;
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-storage-')));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

test('one agent with one home has one storage, whatever it is called and whichever way leads there', () => {
  mkdirSync(join(home, 'real'));
  symlinkSync(join(home, 'real'), join(home, 'link'));
  const at = (folder: string) => storageName('codex', ['codex-acp'], { HOME: join(home, folder) }, home);
  expect(at('link')).toBe(at('real'));
  expect(at('other')).not.toBe(at('real'));
  expect(storageName('pi', ['pi-acp'], { HOME: join(home, 'real') }, home)).not.toBe(at('real'));
});

test('Claude’s sessions are the same with and without the protocol', () => {
  for (const env of [{ HOME: home }, { HOME: home, CLAUDE_CONFIG_DIR: join(home, 'config') }]) {
    expect(storageName('claude-code', ['claude-agent-acp'], env, home)).toBe(claudeStorageName(env, home));
  }
});
