// The example examples/claude-sdk-by-hand.ts, in the project of a user.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { conversationOf, startModel } from '../../../src/testing/index.ts';
import { claudeEnvironment, claudeOrSkip, packageFolder, userHome } from '../support/claude.ts';
import { withAnswers } from '../support/claude-home.ts';

const NAME = 'claude-sdk-by-hand.ts';
const SDK = '@anthropic-ai/claude-agent-sdk';
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-example-')));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Makes a project with the example, Throughline and these packages. */
function makeProject(name: string, ...packages: [name: string, folder: string][]): string {
  const folder = join(scratch, name);
  for (const [name, target] of [['throughline', ROOT], ...packages] as const) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(target, link);
  }
  cpSync(join(ROOT, 'examples', NAME), join(folder, NAME));
  return folder;
}

async function run(cwd: string, env: Record<string, string>, ...args: string[]) {
  const child = spawn(process.execPath, [NAME, ...args], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (text) => {
    stdout += text;
  });
  child.stderr.on('data', (text) => {
    stderr += text;
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  return { code, stdout, stderr };
}

test('claude-sdk-by-hand: each prompt has its own process, and Claude has the earlier prompts', async (context) => {
  claudeOrSkip(context);
  const folder = makeProject('with', [SDK, join(packageFolder, 'node_modules', SDK)]);
  await using model = Object.assign(await startModel(), {
    [Symbol.asyncDispose]: () => model.close(),
  });
  const temporary = join(scratch, 'tmp');
  mkdirSync(temporary);
  const home = userHome(scratch);
  const env = { ...claudeEnvironment(model, home), TMPDIR: temporary };
  const { code, stdout, stderr } = await run(folder, env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const lines = stdout.trim().split('\n');
  expect(lines.map((line) => /, (\w+): /.exec(line)?.[1])).toEqual(['new', 'resumed', 'resumed']);
  expect(lines.at(-1)).toContain('I have seen these codewords: amber, birch.');
  expect(new Set(lines.map((line) => /^process (\d+)/.exec(line)?.[1])).size).toBe(3);
  const last = model.lastRequest();
  const prompts = ['The codeword is amber.', 'The codeword is birch.', 'Which codewords have you seen?'];
  expect(last && conversationOf(last)).toEqual(withAnswers(prompts));
  const left = [temporary, home].flatMap((path) => readdirSync(path));
  expect(left.filter((name) => name.includes('throughline'))).toEqual([]);
});

test('claude-sdk-by-hand: without a login the error of Claude is reported in one line', async (context) => {
  claudeOrSkip(context);
  const folder = makeProject('without-login', [SDK, join(packageFolder, 'node_modules', SDK)]);
  const home = userHome(scratch);
  const { ANTHROPIC_API_KEY: _, ...withoutKey } = claudeEnvironment({ url: 'http://127.0.0.1:9' }, home);
  const temporary = mkdtempSync(join(scratch, 'tmp-'));
  const { code, stdout, stderr } = await run(folder, { ...withoutKey, TMPDIR: temporary });
  expect({ code, stdout, stderr }).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^Error: Not logged in.*\n$/),
  });
  const left = [temporary, home].flatMap((path) => readdirSync(path));
  expect(left.filter((name) => name.includes('throughline'))).toEqual([]);
});

test('claude-sdk-by-hand: without the SDK the error says what to install', async () => {
  const env = { PATH: process.env.PATH ?? '', HOME: scratch };
  const { code, stderr } = await run(makeProject('without'), env, join(scratch, 'data'), 'Hello.');
  expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('npm install @anthropic-ai') });
});
