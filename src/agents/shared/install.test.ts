import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import { type Installable, type InstallRequest, installAgent } from './install.ts';

const TESTED_VERSION = '0.3.325';
const PROGRAM = `claude-agent-sdk-${process.platform}-${process.arch}`;
const CLAUDE: Installable = {
  agent: 'claude',
  package: '@anthropic-ai/claude-agent-sdk',
  tested: TESTED_VERSION,
  megabytes: 500,
  isInstalled(folder, version) {
    const files = ['claude-agent-sdk', PROGRAM].map((name) =>
      join(folder, 'node_modules/@anthropic-ai', name, 'package.json'),
    );
    return files.every((file) => existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).version === version);
  },
};
const installClaude = (request: Omit<InstallRequest, 'what'>) => installAgent({ what: CLAUDE, ...request });

let root: string;
let folder: string;
let env: NodeJS.ProcessEnv;
beforeEach(() => {
  root = temporaryFolder();
  folder = join(root, 'agents', 'claude');
  mkdirSync(join(root, 'bin'));
  env = { PATH: join(root, 'bin'), ROOT: root };
});

/** Records how it was called, then does what the test needs. */
function fakeNpm(body: string): void {
  const file = join(root, 'bin', 'npm');
  writeFileSync(
    file,
    `#!${process.execPath}
const { appendFileSync, mkdirSync, readFileSync, writeFileSync } = require('node:fs');
appendFileSync(process.env.ROOT + '/calls', JSON.stringify(process.argv.slice(2)) + '\\n');
const wanted = JSON.parse(readFileSync('package.json', 'utf8')).dependencies['@anthropic-ai/claude-agent-sdk'];
${body}`,
  );
  chmodSync(file, 0o755);
}
const INSTALLS = `
const at = (name) => 'node_modules/@anthropic-ai/' + name;
for (const [name, file] of [['claude-agent-sdk', 'sdk.mjs'], ['claude-agent-sdk-' + process.platform + '-' + process.arch, 'claude']]) {
  mkdirSync(at(name), { recursive: true });
  writeFileSync(at(name) + '/package.json', JSON.stringify({ name, version: wanted, main: file }));
  writeFileSync(at(name) + '/' + file, '');
}`;
const calls = () =>
  readFileSync(join(root, 'calls'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
const versionThere = () =>
  JSON.parse(readFileSync(join(folder, 'node_modules/@anthropic-ai/claude-agent-sdk/package.json'), 'utf8')).version;
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error) => error,
  );

test('the exact version is installed, without scripts; the second time nothing is done', async () => {
  fakeNpm(INSTALLS);
  const request = { folder, version: null, env };
  expect(await installClaude(request)).toEqual({ folder, version: TESTED_VERSION, changed: true });
  expect(versionThere()).toBe(TESTED_VERSION);
  expect(calls()[0]).toContain('--ignore-scripts');
  expect((await installClaude(request)).changed).toBe(false);
  expect(calls()).toHaveLength(1);
});

test('npm runs no compiled code from the temporary folder, where another user may have put it', async () => {
  const temporary = join(root, 'tmp');
  mkdirSync(temporary);
  // As npm itself does.
  fakeNpm(`require('node:module').enableCompileCache();${INSTALLS}`);
  await installClaude({ folder, version: null, env: { ...env, TMPDIR: temporary } });
  expect(readdirSync(temporary)).toEqual([]);
});

test('another version replaces the previous one, and no other files are left', async () => {
  fakeNpm(INSTALLS);
  await installClaude({ folder, version: null, env });
  await installClaude({ folder, version: '0.3.1', env });
  expect(versionThere()).toBe('0.3.1');
  expect(readdirSync(dirname(folder))).toEqual(['claude']);
});

test.each([
  ['agent_unavailable', 'reach its registry', 'npm error code ENOTFOUND\\nnpm error request to somewhere failed'],
  ['not_found', 'npm has no version', 'npm error code ETARGET\\nnpm error notarget No matching version found'],
  ['storage_full', 'disk is full', 'npm error code ENOSPC'],
  ['agent_unavailable', 'something strange', 'npm error something strange'],
])('%s when npm says: %s', async (code, words, complaint) => {
  fakeNpm(INSTALLS);
  await installClaude({ folder, version: null, env });
  fakeNpm(`console.error('${complaint}'); process.exit(1)`);
  const error = await failure(installClaude({ folder, version: '0.3.1', env }));
  expect(error).toMatchObject({ code });
  expect(error.message).toContain(words);
  // The previous installation is still there, and no incomplete one.
  expect(versionThere()).toBe(TESTED_VERSION);
  expect(readdirSync(dirname(folder))).toEqual(['claude']);
});

test('that there is no such version is said in our words alone', async () => {
  const lines = ['code ETARGET', 'notarget No matching version found for x@99.0.0.', 'notarget In most cases you or …'];
  fakeNpm(`console.error(${JSON.stringify(lines.map((line) => `npm error ${line}`).join('\n'))}); process.exit(1)`);
  const error = await failure(installClaude({ folder, version: '99.0.0', env }));
  expect(error.message).toBe('npm has no version 99.0.0 of @anthropic-ai/claude-agent-sdk.');
});

test('a missing npm is reported', async () => {
  const error = await failure(installClaude({ folder, version: null, env: { PATH: join(root, 'bin') } }));
  expect(error).toMatchObject({ code: 'agent_unavailable', message: 'npm was not found.' });
});

test('an installation without the program for this machine is an error', async () => {
  fakeNpm(INSTALLS.replace("process.platform + '-'", "'another-machine-'"));
  expect(await failure(installClaude({ folder, version: null, env }))).toMatchObject({ code: 'agent_unavailable' });
  expect(existsSync(folder)).toBe(false);
});

test('only an exact version is passed to npm', async () => {
  fakeNpm(INSTALLS);
  for (const version of ['latest', '^0.3.0', 'file:../evil', '--registry=x', '']) {
    expect(await failure(installClaude({ folder, version, env }))).toMatchObject({ code: 'invalid' });
  }
  expect(existsSync(join(root, 'calls'))).toBe(false);
});
