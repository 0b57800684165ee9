import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { sandboxAt } from '../../../../test/contracts/agent-sandbox.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import type { Update } from '../../../core/turn/update.ts';
import { ACP_DEFAULTS } from '../options.ts';
import type { Setup } from './description.ts';
import { profileOf as profileIn, quirksOf } from './known.ts';

const claude = { name: '@agentclientprotocol/claude-agent-acp', version: '0.99.0' };
const codex = { name: '@agentclientprotocol/codex-acp', version: '2.6.0' };
const plain: Setup = { options: ACP_DEFAULTS, env: {}, ownCommand: false };
const mode: Setup = { ...plain, options: { ...ACP_DEFAULTS, noTools: { version: '1.2.3', mode: 'quiet' } } };

let home: string;
const profileOf = (agent: typeof claude, setup: Setup) => profileIn(agent, setup, sandboxAt(home));
beforeEach(() => {
  home = temporaryFolder();
  mkdirSync(join(home, '.codex'));
});

test('a profile is used only for the version and program with which it was tested', async () => {
  expect(await profileOf(claude, plain)).toMatchObject({ kind: 'meta' });
  for (const version of ['0.99.1', '0.98.9', '0.99.0-beta', '1.0.0', 'unknown']) {
    expect(await profileOf({ ...claude, version }, plain), version).toBeNull();
  }
  expect(await profileOf({ ...claude, name: 'claude-agent-acp' }, plain)).toBeNull();
  expect(await profileOf(claude, { ...plain, env: { CLAUDE_CODE_EXECUTABLE: '/another/claude' } })).toBeNull();
});

test('a mode that a person tested is used only for that version', async () => {
  expect(await profileOf({ name: 'any', version: '1.2.3' }, mode)).toEqual({ kind: 'mode', mode: 'quiet' });
  expect(await profileOf({ name: 'any', version: '1.2.4' }, mode)).toBeNull();
});

test('Codex has a profile unless something overrides its variables', async () => {
  const here = { ...plain, env: { HOME: home } };
  const config = (text: string) => writeFileSync(join(home, '.codex', 'config.toml'), text);
  expect(await profileOf(codex, here)).toMatchObject({ kind: 'start' });
  expect(await profileOf({ ...codex, version: '2.6.1' }, here)).toBeNull();
  expect(await profileOf({ name: 'codex-acp', version: '0.16.0' }, here)).toBeNull();
  expect(await profileOf(codex, { ...here, ownCommand: true })).toBeNull();
  expect(await profileOf(codex, { ...here, env: { HOME: home, CODEX_HOME: '.codex' } })).toBeNull();
  for (const variable of ['CODEX_PATH', 'CODEX_CONFIG']) {
    expect(await profileOf(codex, { ...here, env: { HOME: home, [variable]: '{}' } }), variable).toBeNull();
  }
  config('[model_providers.own]\nbase_url = "http://127.0.0.1"\n[mcp_servers.notes]\ncommand = "notes"\n');
  expect(await profileOf(codex, here)).not.toBeNull();
  for (const server of ['url = "http://127.0.0.1"', '"url"="http://127.0.0.1"', '"\\u0075rl" = "http://127.0.0.1"']) {
    config(`[mcp_servers.notes]\n${server}\n`);
    expect(await profileOf(codex, here), server).toBeNull();
  }
  rmSync(join(home, '.codex', 'config.toml'));
  mkdirSync(join(home, '.codex', 'config.toml'));
  expect(await profileOf(codex, here)).toBeNull();
  rmSync(join(home, '.codex', 'config.toml'), { recursive: true });
  writeFileSync(join(home, '.codex', 'environments.toml'), 'include_local = true\n');
  expect(await profileOf(codex, here)).toBeNull();
});

test('project settings disable the profile of Codex; settings of Codex above the directory do not', async () => {
  const profile = await profileOf(codex, { ...plain, env: { HOME: home } });
  const env = async (cwd: string) =>
    profile?.kind === 'start' ? profile.env({ sandbox: sandboxAt(cwd), env: { HOME: home } }) : null;
  const cwd = join(home, 'project', 'part');
  mkdirSync(cwd, { recursive: true });
  writeFileSync(join(home, '.codex', 'config.toml'), '');
  expect(await env(cwd)).toMatchObject({ CODEX_EXEC_SERVER_URL: 'none' });
  mkdirSync(join(home, 'project', '.codex'));
  expect(await env(cwd)).not.toBeNull();
  writeFileSync(join(home, 'project', '.codex', 'config.toml'), '');
  expect(await env(cwd)).toBeNull();
  rmSync(join(home, 'project', '.codex'), { recursive: true });
  expect(await env(cwd)).not.toBeNull();
  symlinkSync(join(home, 'nowhere'), join(home, 'project', '.codex'));
  expect(await env(cwd)).toBeNull();
});

test('quirks are chosen by the name that an agent reports, otherwise by the name in the settings', () => {
  const banner = { sessionId: 's', _meta: { piAcp: { startupInfo: 'pi v1' } } };
  expect(quirksOf('pi-acp', null).banner?.(banner)).toBe('pi v1');
  expect(quirksOf('a-wrapper', 'pi').banner?.(banner)).toBe('pi v1');
  expect(quirksOf('pi-acp', 'goose').banner?.({ sessionId: 's' })).toBeNull();
  expect(quirksOf('a-wrapper', null)).toEqual({});
});

test('only the descriptions name an agent; code for all agents names none', () => {
  const root = join(import.meta.dirname, '..');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const generic = files.filter(
    (file) => !/\.test\.ts$|^known.(?:known|codex|codex-sessions|copilot|opencode|pi)\.ts$/.test(file),
  );
  const names = /claude|codex|gemini|opencode|qwen|copilot|\bpi\b|piAcp|goose/i;
  expect(generic).toContain(join('open', 'open.ts'));
  expect(generic.filter((file) => names.test(readFileSync(join(root, file), 'utf8')))).toEqual([]);
});

test('updates with information about the answer are recognised', () => {
  const ofClaude = quirksOf(claude.name, null).aboutAnswer;
  const ofCodex = quirksOf(codex.name, null).aboutAnswer;
  const raw = (message: object) =>
    ofClaude?.({ sessionUpdate: '_acp/notification', method: '_claude/sdkMessage', params: { message } });
  expect(raw({ type: 'system', subtype: 'api_retry', attempt: 1 })).toMatchObject({ attempt: 1, of: null });
  expect(raw({ type: 'assistant', parent_tool_use_id: null })).toBe('finished');
  expect(raw({ type: 'assistant', parent_tool_use_id: 'toolu_1' })).toBe('ours');
  expect(ofClaude?.({ sessionUpdate: '_acp/notification', method: '_auth/status_update' })).toBeNull();
  const info = (error: object) =>
    ofCodex?.({ sessionUpdate: 'session_info_update', _meta: { codex: { error } } } as Update);
  const broken = {
    message: 'Reconnecting... 2/5',
    codexErrorInfo: { responseStreamDisconnected: { httpStatusCode: 500 } },
  };
  const known = { attempt: 2, of: 5, inMs: null, status: 500, reason: 'Busy.' };
  expect(info({ ...broken, willRetry: true, additionalDetails: 'Busy.' })).toEqual(known);
  const waiting = { message: 'Reconnecting... waiting for network', willRetry: true };
  expect(info(waiting)).toEqual({ attempt: null, of: null, inMs: null, status: null, reason: null });
  expect(info({ ...broken, willRetry: false })).toBeNull();
  const status = (type: string) =>
    ofCodex?.({ sessionUpdate: 'session_info_update', _meta: { codex: { threadStatus: { type } } } } as Update);
  expect([status('systemError'), status('idle')]).toEqual(['failed', null]);
  expect(ofCodex?.({ sessionUpdate: 'session_info_update', title: 'A title' })).toBeNull();
});
