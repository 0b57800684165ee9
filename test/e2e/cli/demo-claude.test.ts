import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startModel } from '../../../src/testing/index.ts';
import { claudeEnvironment, claudeOrSkip, packageFolder } from '../../agents/support/claude.ts';
import { CliHome, parseLines } from './process.ts';

const home = new CliHome();
const temporary = join(home.path, 'tmp');
const person = join(home.path, 'person');
beforeAll(() => {
  for (const path of [temporary, person, join(home.path, 'home', 'agents')]) mkdirSync(path, { recursive: true });
});
afterAll(() => home.remove());

function demo(args: string[], env: Record<string, string> = {}) {
  const own = { TMPDIR: temporary, HOME: person, NODE_COMPILE_CACHE: join(home.path, 'cache') };
  return home.start(['demo', '--agent', 'claude', ...args], { env: { ...own, ...env } }).ended;
}

test('without Claude the demo says how to get it, and leaves nothing behind', async () => {
  const { code, stdout, stderr } = await demo([], { PATH: '' });
  expect([code, stdout]).toEqual([3, '']);
  expect(stderr).toContain('Claude is not installed. Run "throughline agents install claude"');
  expect(readdirSync(temporary)).toEqual([]);
});

test('--live is refused with the scripted agent', async () => {
  const { code, stderr } = await home.run('demo', '--live');
  expect([code, stderr]).toEqual([2, expect.stringContaining('--agent claude')]);
});

test('the real Claude, with the stand-in model, loses its session and the conversation continues', async (context) => {
  claudeOrSkip(context);
  symlinkSync(packageFolder, join(home.path, 'home', 'agents', 'claude'));
  // Variables that would make Claude use another model, which costs money. The demo must not pass them on.
  const elsewhere = { ANTHROPIC_AUTH_TOKEN: 'x', CLAUDE_CODE_USE_BEDROCK: '1', HTTPS_PROXY: 'http://127.0.0.1:9' };
  const planted = plantedFolder();
  const { code, stdout, stderr } = await demo([], { ...elsewhere, TMPDIR: planted });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [, codeword = 'none'] = /The codeword is (\w+-\w+-\d{4})/.exec(stdout) ?? [];
  expect(stdout).toMatch(/The agent is the real Claude \(\d+\.\d+\.\d+\).*\bstand-in\b/);
  expect(stdout).toMatch(/process \d+ killed with SIGKILL, 1 session file deleted/);
  expect(stdout).toContain('agent  I have seen no codewords.  ← forgotten');
  expect(stdout).toContain(`agent  I have seen these codewords: ${codeword}.  ← remembered`);
  expect(stdout).toMatch(/receipt {2}restored by rehydrate: 1 turn carried, 0 dropped, proof proved/);
  expect([readdirSync(planted), readdirSync(person)]).toEqual([['.claude', '.git'], []]);
  expect(readdirSync(home.path).filter((name) => name.startsWith('throughline-demo'))).toEqual([]);
});

/** A temporary folder in which another user has put settings for Claude, as it reads them at the top of a repository. */
function plantedFolder(): string {
  const folder = join(home.path, 'planted');
  mkdirSync(join(folder, '.claude'), { recursive: true });
  mkdirSync(join(folder, '.git/refs'), { recursive: true });
  mkdirSync(join(folder, '.git/objects'));
  writeFileSync(join(folder, '.git/HEAD'), 'ref: refs/heads/main\n');
  const hooks = [{ hooks: [{ type: 'command', command: `touch '${join(folder, 'ran')}'` }] }];
  const settings = JSON.stringify({ hooks: { SessionStart: hooks, UserPromptSubmit: hooks } });
  writeFileSync(join(folder, '.claude/settings.local.json'), settings);
  return folder;
}

test('the demo uses the Claude of the settings, and no other', async (context) => {
  const { program } = claudeOrSkip(context);
  const config = join(home.path, 'set.json');
  const env = { PATH: '', THROUGHLINE_HOME: join(home.path, 'nothing-installed') };
  const configure = (agent: object) => writeFileSync(config, JSON.stringify({ agents: { mine: agent } }));
  configure({ adapter: 'claude-cli', command: [program], env: { ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' } });
  const shown = await demo(['--config', config], env);
  expect({ code: shown.code, stderr: shown.stderr }).toEqual({ code: 0, stderr: '' });
  expect(shown.stdout).toContain('← remembered');
  configure({ adapter: 'claude-sdk', package: './no-such-folder' });
  const missing = await demo(['--config', config]);
  expect(missing.code).toBe(3);
  expect(missing.stderr).toContain('no-such-folder');
  expect(readdirSync(temporary)).toEqual([]);
});

test('with --live the demo uses the login of the person, and leaves no session in their files', async (context) => {
  claudeOrSkip(context);
  const model = await startModel();
  const { PATH: _, HOME: __, ...login } = claudeEnvironment(model, person);
  const { code, stdout, stderr } = await demo(['--live', '--json'], login);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(parseLines(stdout).at(-1)).toMatchObject({ kind: 'result', ok: true, agent: 'claude', live: true });
  expect(model.requests.filter(({ side }) => !side)).toHaveLength(3);
  await model.close();
  expect(readdirSync(temporary).filter((name) => name.startsWith('throughline'))).toEqual([]);
  expect(readdirSync(join(person, '.claude', 'projects'))).toEqual([]);
});
