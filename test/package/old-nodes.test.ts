import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { published } from '../../scripts/manifest.js';
import { blocksIn } from '../docs/blocks.ts';
import { AGENTS } from '../e2e/cli/agents.ts';
import { CliHome, Running, until } from '../e2e/cli/process.ts';
import { inTerminal } from '../e2e/cli/terminal.ts';
import { ROOT, run, TEST_PACKAGES } from './packed.ts';

// Started with an older Node, the command continues with the Node in node_modules.

const CHECKOUT = join(ROOT, 'bin/throughline.js');
const home = new CliHome({ ...AGENTS, stubborn: { adapter: 'scripted', options: { cancelGraceMs: 60_000 } } });
const scratch = mkdtempSync(join(tmpdir(), 'throughline-old-nodes-'));
afterAll(() => home.remove());
afterAll(() => rmSync(scratch, { recursive: true }));

describe.each([
  ['20', 'which starts a child'],
  ['22', 'which can replace itself'],
])('Node %s, %s', (version) => {
  const node = join(TEST_PACKAGES, `node-${version}`, 'bin/node');
  beforeEach((context) => {
    if (!existsSync(node)) context.skip(`needs Node ${version}, which test/package installs on Linux with x64`);
  });

  test('runs a command, with its input, its output and its exit code', async () => {
    const how = { node, input: 'The codeword is amber.', env: home.environment(), cwd: home.path };
    const sent = await new Running(CHECKOUT, ['send', `in-${version}`, '-'], how).ended;
    expect(sent).toMatchObject({ code: 0, signal: null, stdout: 'Noted: The codeword is amber.\n' });
    const wrong = await home.start(['show', 'nothing'], { node }).ended;
    expect(wrong).toMatchObject({ code: 4, signal: null, stdout: '' });
    expect(wrong.stderr).not.toMatch(/warning/i);
  });

  test('passes on a signal, once', async () => {
    const key = `once-${version}`;
    const running = home.start(['send', key, '/say begun\n/hang'], { node });
    await running.until('stdout', /begun/);
    running.kill('SIGINT');
    expect(await running.ended).toMatchObject({ code: 130, signal: null, stdout: 'begun\n' });
    expect((await home.show(key)).turns[0]).toMatchObject({ state: 'cancelled' });
  });

  test('lets a turn end after SIGTERM', async () => {
    const running = home.start(['send', `ending-${version}`, '/stream 10 50'], { node });
    await running.until('stdout', /chunk 1/);
    running.kill('SIGTERM');
    const { code, stdout } = await running.ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('chunk 10') });
  });

  test('waits at the first Ctrl-C in a terminal, and ends at the second', async (context) => {
    const key = `terminal-${version}`;
    // This agent ignores a cancel, and has a minute to obey: so only a second Ctrl-C ends the command at once.
    const terminal = inTerminal(home, ['send', key, '/say begun\n/hang!', '--agent', 'stubborn'], {}, node);
    if (terminal === null) return context.skip('needs the program "script"');
    let hasEnded = false;
    void terminal.ended.then(() => {
      hasEnded = true;
    });
    await terminal.until(/begun/);
    terminal.type('\x03');
    await terminal.until(/Press Ctrl-C again to kill/);
    await home.ok('show', key); // takes longer than a signal
    expect(hasEnded).toBe(false);
    terminal.type('\x03');
    expect((await terminal.ended).code).toBe(130);
  });

  test('ends with the same signal as the program that it started', async () => {
    const running = home.start(['send', `killed-${version}`, '/say begun\n/hang'], { node });
    await running.until('stdout', /begun/);
    const [child] = childrenOf(running.pid).filter((pid) => commandOf(pid).includes('throughline.js'));
    process.kill(child ?? running.pid, 'SIGKILL');
    expect(await running.ended).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(child === undefined).toBe(version === '22');
    await until(async () => (await home.show(`killed-${version}`)).turns[0].state === 'interrupted');
  });

  test('says before anything is installed in a checkout what installs it, and npx adds no warning', async () => {
    const clone = join(scratch, `clone-${version}`);
    for (const name of ['bin', 'package.json', '.npmrc']) {
      cpSync(join(ROOT, name), join(clone, name), { recursive: true });
    }
    mkdirSync(join(clone, 'src'));
    writeFileSync(join(clone, 'src/main.ts'), '');
    // The tests are started by npm, whose variables would change what npx does.
    const ofNpm = Object.keys(process.env).filter((name) => name.startsWith('npm_'));
    const unset = Object.fromEntries(ofNpm.map((name) => [name, undefined]));
    const env = {
      ...unset,
      PATH: `${dirname(node)}:/usr/local/bin:/usr/bin:/bin`,
      HOME: clone,
      npm_config_offline: 'true',
    };
    const demo = () => run('npx', ['throughline', 'demo'], { cwd: clone, env });
    const nothing = {
      code: 3,
      stderr: expect.stringMatching(/^throughline: Nothing is installed in this checkout yet\. Run "npm start" .*\n$/),
    };
    expect(await demo()).toMatchObject(nothing);
    // An installation was cut off.
    mkdirSync(join(clone, 'node_modules'));
    expect(await demo()).toMatchObject(nothing);
    // npm was told to run no scripts.
    writeFileSync(join(clone, 'node_modules/.package-lock.json'), '{}');
    const { code, stderr } = await demo();
    expect(stderr).toMatch(
      /^throughline: Throughline needs Node 24\.15 .* This checkout lacks .* Run "npm start" .*\n$/,
    );
    expect(code).toBe(3);
  });

  test('tells a program what the library needs, with the first lines of the README', async () => {
    const user = join(scratch, `user-${version}`);
    mkdirSync(join(user, 'node_modules'), { recursive: true });
    symlinkSync(ROOT, join(user, 'node_modules/throughline'));
    const [snippet] = blocksIn('README.md', readFileSync(join(ROOT, 'README.md'), 'utf8'), ['ts']);
    writeFileSync(join(user, 'program.mjs'), snippet?.code ?? '');
    const { code, stderr } = await run(node, ['program.mjs'], { cwd: user });
    expect(stderr).toMatch(
      /^Error: Throughline needs Node 24\.15 or newer, and this is Node 2.*"npm install node@24"/m,
    );
    expect(code).toBe(1);
  });
});

test('a checkout may be set up with any Node from 20, and the package says what it needs', () => {
  const checkout = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  expect(checkout.engines).toEqual({ node: '>=20' });
  expect(published(checkout).engines).toEqual({ node: '>=24.15' });
});

test('a program in a checkout can import all values of the library', async () => {
  const library = await import('../../bin/library.mjs');
  expect(Object.keys(library).toSorted()).toEqual(Object.keys(await import('../../src/index.ts')).toSorted());
});

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
}

function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
}
