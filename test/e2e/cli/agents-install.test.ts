// `throughline agents` and `agents install`, with a fake npm and fake programs: nothing is downloaded, and no Claude runs.
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startModel } from '../../../src/testing/index.ts';
import { until } from '../../contracts/agent-sandbox.ts';
import { agentProgram } from '../../program.ts';
import { serveProcess } from '../http/support/served-process.ts';
import { CliHome } from './process.ts';

let home: CliHome;
let env: Record<string, string>;
beforeEach(() => {
  home = new CliHome();
  mkdirSync(join(home.path, 'bin'));
  env = { PATH: join(home.path, 'bin'), HOME: home.path, THROUGHLINE_CONFIG: '' };
});
afterEach(() => home.remove());

const run = (...args: string[]) => home.start(args, { env }).ended;

/** Puts a program on the PATH of the commands. */
function writeProgram(name: string, text: string): void {
  writeFileSync(join(home.path, 'bin', name), text);
  chmodSync(join(home.path, 'bin', name), 0o755);
}
const CLAUDE = '#!/bin/sh\necho "2.1.325 (Claude Code)"\n';
/** A fake npm that writes what the real one would install: the SDK, and a program for this machine. */
const NPM = `#!${process.execPath}
const { chmodSync, mkdirSync, readFileSync, writeFileSync } = require('node:fs');
const wanted = Object.values(JSON.parse(readFileSync('package.json', 'utf8')).dependencies)[0];
for (const [name, file] of [['', 'sdk.mjs'], ['-' + process.platform + '-' + process.arch, 'claude']]) {
  const folder = 'node_modules/@anthropic-ai/claude-agent-sdk' + name;
  mkdirSync(folder, { recursive: true });
  writeFileSync(folder + '/package.json', JSON.stringify({ name, version: wanted, main: file }));
  writeFileSync(folder + '/' + file, ${JSON.stringify(CLAUDE)});
  chmodSync(folder + '/' + file, 0o755);
}
`;

test('without Claude, "agents" lists the scripted agent and says how to install Claude', async () => {
  const { code, stdout, stderr } = await run('agents');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^scripted \(scripted\): version/);
  expect(stderr).toMatch(/throughline\S* agents install claude"/);
});

test('without an agent, a prompt is refused with the command that installs one', async () => {
  for (const args of [
    ['send', 'notes', 'hello'],
    ['task', 'run', 'Say hello'],
  ]) {
    const { code, stdout, stderr } = await run(...args);
    expect([code, stdout]).toEqual([3, '']);
    expect(stderr).toMatch(/No agent is installed here\. Run "\S*throughline\S* agents install claude"/);
  }
  expect((await run('list', '--json')).stdout).toBe(''); // the refused commands left no conversation
  const named = await run('send', 'notes', 'hello', '--agent', 'scripted');
  expect(named.stdout).toBe('Noted: hello\n');
  // From then on the conversation has the agent that was named.
  expect((await run('send', 'notes', 'again')).stdout).toBe('Noted: again\n');
});

test('a Claude on PATH is used by its program, and is the default agent', async () => {
  writeProgram('claude', CLAUDE);
  const { stdout, stderr } = await run('agents', '--json');
  const agents = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(agents).toMatchObject([
    { name: 'claude', adapter: 'claude-cli', isDefault: true, traits: { version: '2.1.325' }, problem: null },
    { name: 'scripted', isDefault: false },
  ]);
  expect(agents[0].where).toContain(join(home.path, 'bin', 'claude'));
  expect(stderr).toBe('');
});

test('a Claude that does not run is listed with the reason, and other agents still work', async () => {
  writeProgram('claude', '#!/bin/sh\nexit 1\n');
  const { code, stdout } = await run('agents');
  expect(code).toBe(0);
  expect(stdout).toMatch(/claude \(claude-cli, default\): .*--version/);
  expect(stdout).toMatch(/scripted \(scripted\): version/);
  const sent = await run('send', 'x', 'hello', '--agent', 'scripted');
  expect(sent.stdout).toBe('Noted: hello\n');
  expect((await run('send', 'y', 'hello')).code).toBe(3);
});

test('after "agents install claude" its SDK is used, and a second install changes nothing', async () => {
  writeProgram('npm', NPM);
  const first = await run('agents', 'install', 'claude');
  expect(first.code, first.stderr).toBe(0);
  expect(first.stdout).toMatch(/^claude 0\.3\.\d+ installed: /);
  expect((await run('agents', 'install', 'claude')).stdout).toContain('is already installed');
  const [claude] = (await run('agents', '--json')).stdout.split('\n');
  expect(JSON.parse(claude ?? '')).toMatchObject({ name: 'claude', adapter: 'claude-sdk', problem: null });
  expect(JSON.parse(claude ?? '').where).toContain('throughline agents install');
});

/** Writes a fake npm that installs this code in place of Codex. */
function writeNpmForCodex(index: string): void {
  const codex = `@openai/codex-${process.platform}-${process.arch}`;
  writeProgram(
    'npm',
    `#!${process.execPath}
const { mkdirSync, readFileSync, writeFileSync } = require('node:fs');
const [[name, version]] = Object.entries(JSON.parse(readFileSync('package.json', 'utf8')).dependencies);
for (const [one, bin] of [[name, { 'codex-acp': 'index.js' }], ['${codex}', {}]]) {
  mkdirSync('node_modules/' + one, { recursive: true });
  writeFileSync('node_modules/' + one + '/package.json', JSON.stringify({ name: one, version, bin }));
}
writeFileSync('node_modules/' + name + '/index.js', ${JSON.stringify(index)});
`,
  );
}

test('"agents install codex" installs Codex', async () => {
  writeNpmForCodex('process.exit(1)');
  const { code, stdout, stderr } = await run('agents', 'install', 'codex');
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/^codex 2\.\d+\.\d+ installed: .*agents\/acp\/codex\n/);
  expect((await run('agents', 'install', 'codex')).stdout).toContain('is already installed');
  expect((await run('agents')).stdout).toMatch(/^codex \(acp, default\): codex did not answer as an ACP agent does/m);
});

test('a running server notices an agent that is installed', async () => {
  const model = await startModel();
  const program = agentProgram('complete');
  writeNpmForCodex(`process.env.MODEL_URL = '${model.url}'; import('${program}');`);
  const server = await serveProcess(home, { env });
  try {
    const none = await run('send', 'chat', 'The codeword is amber.');
    expect(none).toMatchObject({ code: 3, stderr: expect.stringContaining('No agent is installed here') });
    const named = await run('send', 'chat', 'The codeword is amber.', '--agent', 'codex');
    expect(named).toMatchObject({ code: 3, stderr: expect.stringContaining('There is no agent "codex" here') });
    for (const { stderr } of [none, named]) expect(stderr).toContain('a server reads its settings when it starts');
    expect((await run('agents', 'install', 'codex')).code).toBe(0);
    await until('the agent is listed', async () =>
      /^codex \(acp, default\): version complete/m.test((await run('agents')).stdout),
    );
    const sent = await run('send', 'chat', 'The codeword is amber.');
    expect(sent.code, sent.stderr).toBe(0);
    expect((await run('show', 'chat', '--json')).stdout).toContain('"agent":"codex"');
  } finally {
    server.running.kill('SIGTERM');
    await server.running.ended;
    await model.close();
  }
});

test('"agents install --version" installs that version, and does not print the version of throughline', async () => {
  writeProgram('npm', NPM);
  for (const [i, words] of [['--version', '0.3.1'], ['--version=0.3.2']].entries()) {
    const { stdout } = await run('agents', 'install', 'claude', '--json', ...words);
    expect(JSON.parse(stdout)).toMatchObject({ agent: 'claude', version: `0.3.${i + 1}`, changed: true });
  }
});

test.each([
  ['no network', 3, '#!/bin/sh\necho "npm error code ENOTFOUND" >&2\nexit 1\n', /could not reach its registry.*proxy/],
  [
    'no such version',
    4,
    '#!/bin/sh\necho "npm error code ETARGET" >&2\nexit 1\n',
    /npm has no version [\d.]+ of @anthropic-ai\/claude-agent-sdk\. See "npm view/,
  ],
  ['no npm', 3, null, /npm was not found/],
])(
  '"agents install" with %s ends with the exit code %i and one line on stderr, and leaves no files',
  async (_, code, npm, words) => {
    if (npm !== null) writeProgram('npm', npm);
    const ended = await home.start(['agents', 'install', 'claude'], { env }).ended;
    expect(ended.code).toBe(code);
    expect(ended.stderr.trim().split('\n')).toHaveLength(1);
    expect(ended.stderr).toMatch(words);
    expect(ended.stdout).toBe('');
    const agents = join(home.path, 'home', 'agents');
    expect(existsSync(agents) ? readdirSync(agents) : []).toEqual([]);
  },
);

test('an unknown agent, an invalid version and a missing name are refused', async () => {
  expect((await run('agents', 'install', 'nobody')).code).toBe(4);
  expect((await run('agents', 'install', 'claude', '--version', 'latest')).code).toBe(2);
  expect((await run('agents', 'install')).code).toBe(2);
});
