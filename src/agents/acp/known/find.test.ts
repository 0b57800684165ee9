import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { sandboxAt } from '../../../../test/contracts/agent-sandbox.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import { INSTALL_COMMANDS } from '../../../core/public/agents.ts';
import { inheritedVariables } from '../../shared/programs.ts';
import { findAgent } from './find.ts';
import { KNOWN_AGENTS } from './known.ts';
import { availableAgents, installableAgent, installFolder } from './packages.ts';

let root: string;
let bin: string;
let installed: string;
beforeEach(() => {
  root = temporaryFolder();
  [bin, installed] = [join(root, 'bin'), join(root, 'installed')];
  mkdirSync(bin);
});

function program(name: string): string {
  const file = join(bin, name);
  writeFileSync(file, '#!/bin/sh\n');
  chmodSync(file, 0o755);
  return file;
}

function packageIn(folder: string, name: string, bins: Readonly<Record<string, string>>): string {
  const at = join(folder, 'node_modules', name);
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, 'package.json'), JSON.stringify({ name, bin: bins }));
  for (const file of Object.values(bins)) writeFileSync(join(at, file), '');
  return at;
}

const find = (known: string | null, more: object = {}) =>
  findAgent({ known, installed, path: bin, ...more }, sandboxAt(root));

test('an agent known by name is found on PATH, with its arguments', async () => {
  const gemini = program('gemini');
  expect(await find('gemini')).toEqual({ command: [gemini, '--acp'], where: `${gemini} (PATH)` });
  expect(await find('codex')).toMatchObject({ problem: expect.stringContaining('"codex-acp" was not found') });
  expect(availableAgents(installed, bin)).toEqual(['gemini']);
});

test('the hint names all packages that have to be installed', async () => {
  expect(await find('goose')).toMatchObject({ hint: expect.stringContaining('npm install -g @aaif/goose-acp"') });
  expect(await find('pi')).toMatchObject({
    hint: expect.stringContaining('npm install -g pi-acp @earendil-works/pi-coding-agent"'),
  });
});

test('a package comes before PATH, and a script in it is run by our own Node', async () => {
  program('codex-acp');
  const at = packageIn(installed, '@agentclientprotocol/codex-acp', { 'codex-acp': 'codex.js' });
  expect(await find('codex')).toMatchObject({ command: [process.execPath, join(at, 'codex.js')] });
  const named = packageIn(join(root, 'named'), '@agentclientprotocol/codex-acp', { 'codex-acp': 'codex' });
  expect(await find('codex', { package: join(root, 'named') })).toMatchObject({ command: [join(named, 'codex')] });
});

test.each(Object.entries(KNOWN_AGENTS))('people are told how to install %s', (name, known) => {
  const ours =
    installableAgent(name) === null ? `npm install -g ${known.package}` : `throughline agents install ${name}`;
  expect(INSTALL_COMMANDS[name]).toContain(ours);
});

test('an agent installed by name has the version of our tests, complete, in its own folder', async () => {
  const { dependencies } = JSON.parse(readFileSync('test/agents/package.json', 'utf8'));
  const codex = installableAgent('codex');
  if (codex === null) throw new Error('Codex cannot be installed');
  expect(dependencies[codex.package]).toBe(codex.tested);
  expect(await find('codex')).toMatchObject({ hint: expect.stringContaining('throughline agents install codex') });
  const folder = installFolder(installed, 'codex');
  const at = packageIn(folder, codex.package, { 'codex-acp': 'codex.js' });
  writeFileSync(join(at, 'package.json'), JSON.stringify({ version: codex.tested, bin: { 'codex-acp': 'codex.js' } }));
  expect(codex.isInstalled(folder, codex.tested)).toBe(false);
  packageIn(folder, `@openai/codex-${process.platform}-${process.arch}`, {});
  expect(codex.isInstalled(folder, codex.tested)).toBe(true);
  expect(codex.isInstalled(folder, '2.5.0')).toBe(false);
  expect(await find('codex')).toMatchObject({ where: expect.stringContaining('(throughline agents install)') });
  expect(availableAgents(installed, '')).toEqual(['codex']);
  expect(['gemini', 'nobody', 'toString'].map(installableAgent)).toEqual([null, null, null]);
});

test('packages beside Throughline are found as Node finds them', async () => {
  const at = packageIn(join(root, 'app'), '@agentclientprotocol/codex-acp', { 'codex-acp': 'codex.js' });
  const ours = join(root, 'app', 'node_modules', 'throughline', 'dist', 'agents', 'acp');
  expect(await find('codex', { ours })).toEqual({
    command: [process.execPath, join(at, 'codex.js')],
    where: `${join(at, 'codex.js')} (Throughline's own packages)`,
  });
});

test('a path from the settings is used or refused, never skipped', async () => {
  program('codex-acp');
  expect(await find('codex', { package: join(root, 'none') })).toMatchObject({ hint: 'Check its "package".' });
  expect(await find('codex', { command: [join(root, 'none')] })).toMatchObject({ hint: 'Check its "command".' });
  const own = program('own');
  expect(await find(null, { command: ['own', '--acp'] })).toMatchObject({ command: [own, '--acp'] });
});

test('relative entries of PATH are skipped', async () => {
  program('gemini');
  expect('command' in (await find('gemini', { path: ['bin', '.', ''].join(delimiter) }))).toBe(false);
});

test('an agent gets the variables of its own model, and no other secret', () => {
  const ours = {
    OPENAI_API_KEY: 'o',
    ANTHROPIC_API_KEY: 'a',
    GITHUB_TOKEN: 'g',
    AWS_SECRET_ACCESS_KEY: 'x',
    HTTPS_PROXY: 'p',
  };
  expect(inheritedVariables(KNOWN_AGENTS.codex?.variables ?? [], ours)).toEqual({
    OPENAI_API_KEY: 'o',
    HTTPS_PROXY: 'p',
  });
  expect(inheritedVariables(KNOWN_AGENTS['claude-code']?.variables ?? [], ours)).toEqual({
    ANTHROPIC_API_KEY: 'a',
    HTTPS_PROXY: 'p',
  });
  expect(inheritedVariables([], ours)).toEqual({ HTTPS_PROXY: 'p' });
});
