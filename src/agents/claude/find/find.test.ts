import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { sandboxAt } from '../../../../test/contracts/agent-sandbox.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import { starterOf } from '../../../core/process.ts';
import { type FindSettings, findClaude as find } from './find.ts';
import { availableClaude, INSTALLABLE_CLAUDE, OLDEST_SDK } from './package.ts';

let root: string;
beforeEach(() => {
  root = temporaryFolder();
});

const folder = (name: string) => join(root, name);
const nowhere = () => ({ installed: folder('installed'), path: '' });

/** `work`: the working directory of the sandbox; null: an empty one. */
async function findClaude(settings: FindSettings, work: string | null) {
  const found = await find(settings, sandboxAt(work ?? mkdtempSync(join(root, 'work-'))));
  return { ...found, program: found.command[0] ?? null };
}

/** A program that prints a version, and leaves a file when it has run. */
function program(file: string, version: string): string {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\necho ran >> '${root}/ran'\necho '${version} (Claude Code)'\n`);
  chmodSync(file, 0o755);
  return file;
}

/** The SDK in a folder's node_modules, with the program for this machine. */
function sdkIn(name: string, { version = '0.3.325', cli = '2.1.325' as string | null, libc = '' } = {}): string {
  const scope = join(folder(name), 'node_modules', '@anthropic-ai');
  const sdk = join(scope, 'claude-agent-sdk');
  mkdirSync(sdk, { recursive: true });
  writeFileSync(join(sdk, 'package.json'), JSON.stringify({ name: 'x', version, main: 'sdk.mjs' }));
  writeFileSync(join(sdk, 'sdk.mjs'), 'throw new Error("nobody may import this")');
  if (cli !== null) {
    const machine = join(scope, `claude-agent-sdk-${process.platform}-${process.arch}${libc}`);
    program(join(machine, 'claude'), cli);
    writeFileSync(join(machine, 'package.json'), JSON.stringify({ name: 'y', version }));
  }
  return folder(name);
}

test('the version that is installed by name is the one that our tests use', () => {
  const { dependencies } = JSON.parse(readFileSync('test/agents/package.json', 'utf8'));
  expect(dependencies['@anthropic-ai/claude-agent-sdk']).toBe(INSTALLABLE_CLAUDE.tested);
});

test('a project with any SDK that is not too old can install Throughline beside it', () => {
  const { peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(peerDependencies['@anthropic-ai/claude-agent-sdk']).toBe(`>=${OLDEST_SDK}`);
});

test('when Claude is not found, the message says what to do', async () => {
  const found = await findClaude(nowhere(), null);
  expect(found).toMatchObject({ sdk: null, program: null, version: null, where: 'nowhere' });
  expect(found.problem).toContain('throughline agents install claude');
});

test('PATH is searched last, and a program there needs no SDK', async () => {
  const claude = program(join(folder('bin'), 'claude'), '2.1.300');
  const path = [folder('empty'), folder('bin')].join(delimiter);
  const found = await findClaude({ ...nowhere(), path }, null);
  expect(found).toMatchObject({ sdk: null, program: claude, version: '2.1.300', problem: null });
  expect(found.where).toBe(`${claude} (PATH)`);
});

test('a relative entry of PATH is ignored: it would be a folder of the project', async () => {
  program(join(folder('work'), 'claude'), '6.6.6');
  const found = await findClaude({ ...nowhere(), path: ['.', '', 'work'].join(delimiter) }, folder('work'));
  expect(found.program).toBeNull();
});

test('the installed folder comes before PATH, with the program beside the SDK', async () => {
  const installed = sdkIn('installed');
  program(join(folder('bin'), 'claude'), '2.1.300');
  const found = await findClaude({ installed, path: folder('bin') }, null);
  expect(found).toMatchObject({ version: '2.1.325', problem: null });
  expect(found.sdk).toMatch(/claude-agent-sdk[/\\]sdk\.mjs$/);
  expect(found.where).toContain('SDK 0.3.325 in');
  expect(found.where).toContain('throughline agents install');
});

test('a program for the other libc is found', async () => {
  if (process.platform !== 'linux') return;
  const found = await findClaude({ installed: sdkIn('installed', { libc: '-musl' }), path: '' }, null);
  expect(found.program).toContain('-musl');
});

test('an SDK without its program uses the one on PATH', async () => {
  const claude = program(join(folder('bin'), 'claude'), '2.1.300');
  const found = await findClaude({ installed: sdkIn('installed', { cli: null }), path: folder('bin') }, null);
  expect(found.sdk).not.toBeNull();
  expect(found.program).toBe(claude);
});

test('the working directory is searched only if the settings trust exactly that directory', async () => {
  const work = sdkIn('work', { cli: '6.6.6' });
  const below = join(work, 'below');
  mkdirSync(below);
  expect((await findClaude(nowhere(), work)).program).toBeNull();
  expect((await findClaude({ ...nowhere(), trustProject: true }, below)).program).toBeNull();
  expect((await findClaude({ ...nowhere(), trustProject: true }, null)).program).toBeNull();
  const found = await findClaude({ installed: sdkIn('installed'), path: '', trustProject: true }, work);
  expect(found.version).toBe('6.6.6');
  expect(found.where).toContain('the working directory');
  expect(found.sdk).toContain(work);
  // An isolated agent may have written it: its program runs in the sandbox, but we would import the SDK outside.
  const isolated = { ...sandboxAt(work), host: 'isolated' };
  const there = await find({ installed: sdkIn('installed'), path: '', trustProject: true }, isolated);
  expect(there).toMatchObject({ version: '6.6.6', sdk: expect.stringContaining(folder('installed')) });
});

test('the setting "package" is used before other places; a folder without Claude is an error', async () => {
  const settings = { installed: sdkIn('installed'), path: '' };
  const found = await findClaude(
    { ...settings, package: sdkIn('chosen', { version: '0.3.301', cli: '2.1.301' }) },
    null,
  );
  expect(found).toMatchObject({ version: '2.1.301', where: expect.stringContaining('SDK 0.3.301 in') });
  const missing = await findClaude({ ...settings, package: folder('empty') }, null);
  expect(missing).toMatchObject({ sdk: null, program: null });
  expect(missing.problem).toContain('"package"');
});

/** An SDK as it was when Claude was a script: without a package for the machine. */
function oldSdkIn(name: string): string {
  const at = join(sdkIn(name, { cli: null }), 'node_modules', '@anthropic-ai', 'claude-agent-sdk');
  const manifest = { name: 'x', version: '0.2.101', claudeCodeVersion: '2.1.101', main: 'sdk.mjs' };
  writeFileSync(join(at, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(at, 'cli.js'), '');
  return folder(name);
}

test('an older SDK in the setting "package" is refused with its version and how to update, and nothing else is used', async () => {
  const settings = { installed: sdkIn('installed'), path: folder('bin') };
  program(join(folder('bin'), 'claude'), '2.1.325');
  const found = await findClaude({ ...settings, package: oldSdkIn('chosen') }, null);
  expect(found).toMatchObject({ sdk: null, program: null });
  expect(found.problem).toMatch(
    /^The Agent SDK 0\.2\.101 in .* \(the setting "package"\), which brings Claude 2\.1\.101, is too old/,
  );
  expect(found.problem).toContain('npm install @anthropic-ai/claude-agent-sdk@0.3.325');
  expect(existsSync(join(root, 'ran'))).toBe(false);
});

test('an older SDK that no setting names is skipped; if there is no other, the problem is reported', async () => {
  const work = oldSdkIn('work');
  const settings = { installed: sdkIn('installed'), path: '', trustProject: true };
  expect(await findClaude(settings, work)).toMatchObject({ version: '2.1.325', sdkProblem: null });
  program(join(folder('bin'), 'claude'), '2.1.325');
  const only = { installed: folder('none'), path: folder('bin') };
  const found = await findClaude({ ...only, trustProject: true }, work);
  // The program can be used without the SDK.
  expect(found).toMatchObject({ version: '2.1.325', problem: null, sdkProblem: expect.stringContaining('0.2.101') });
  expect(availableClaude(oldSdkIn('none'), folder('bin'))).toBe('claude-cli');
});

test('the setting "command" is used first, with its arguments; a missing program is an error', async () => {
  const claude = program(join(folder('bin'), 'claude'), '2.1.2');
  const settings = { installed: sdkIn('installed'), path: folder('bin') };
  const found = await findClaude({ ...settings, command: [claude, '--flag'] }, null);
  expect(found).toMatchObject({ program: claude, command: [claude, '--flag'], version: '2.1.2' });
  expect(found.sdk).not.toBeNull();
  expect((await findClaude({ ...settings, command: ['claude'] }, null)).program).toBe(claude);
  for (const command of [[folder('no-such')], ['no-such-program'], [root]]) {
    const missing = await findClaude({ ...settings, command }, null);
    expect(missing.program).toBeNull();
    expect(missing.problem).toContain('"command"');
  }
});

test('only the program that was chosen is run, once', async () => {
  sdkIn('work', { cli: '6.6.6' });
  program(join(folder('bin'), 'claude'), '6.6.6');
  await findClaude({ installed: sdkIn('installed'), path: folder('bin') }, folder('work'));
  expect(readFileSync(join(root, 'ran'), 'utf8')).toBe('ran\n');
});

test('a program that is asked for its version gets a mark, and only the allowed variables of our environment', async () => {
  const claude = join(folder('bin'), 'claude');
  mkdirSync(dirname(claude));
  writeFileSync(claude, `#!/bin/sh\necho 2.1.300; echo "$THROUGHLINE_MARK$VITEST" > '${root}/said'\n`);
  chmodSync(claude, 0o755);
  await findClaude({ ...nowhere(), path: folder('bin') }, null);
  expect(starterOf(readFileSync(join(root, 'said'), 'utf8').trim())).toMatchObject({ place: 'test' });
});

test.each(['1.0.30', '2.0.76', '2.1.99', '2.1.247'])(
  'Claude %s is too old, and the message says what to do',
  async (version) => {
    const claude = program(join(folder('bin'), 'claude'), version);
    const found = await findClaude({ ...nowhere(), path: folder('bin') }, null);
    const update = 'run "claude update" or "throughline agents install claude"';
    expect(found).toMatchObject({
      version,
      problem: `Claude ${version} (${claude}) is too old. Throughline needs 2.1.248 or newer: ${update}.`,
    });
  },
);

test.each(['2.1.248', '2.2.0', '10.0.0'])('Claude %s is new enough', async (version) => {
  program(join(folder('bin'), 'claude'), version);
  expect((await findClaude({ ...nowhere(), path: folder('bin') }, null)).problem).toBeNull();
});

test('a program that does not print its version is a problem, not an exception', async () => {
  const claude = join(folder('bin'), 'claude');
  mkdirSync(dirname(claude));
  writeFileSync(claude, '#!/bin/sh\nexit 3\n');
  chmodSync(claude, 0o755);
  const found = await findClaude({ ...nowhere(), path: folder('bin') }, null);
  expect(found).toMatchObject({ program: claude, version: null });
  expect(found.problem).toContain('--version');
});
