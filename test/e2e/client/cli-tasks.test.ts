// `throughline task` with a server: the one of its data home, which it finds by itself, and one that is named with --server.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CliHome, parseLines, until } from '../cli/process.ts';
import { type ServedProcess, serveProcess } from '../http/support/served-process.ts';

let home: CliHome;
let server: ServedProcess;
/** The environment of a user who has no data here, only access to the server. */
let away: Record<string, string>;
beforeAll(async () => {
  home = new CliHome();
  server = await serveProcess(home);
  away = { THROUGHLINE_HOME: join(home.path, 'away'), THROUGHLINE_TOKEN: server.token };
});
afterAll(() => home.remove());

const throughServer = (...args: string[]) =>
  home.start(['--server', server.url, 'task', ...args], { env: away, cwd: home.path }).ended;

test('the server works on a goal, in the directory that is relative to the command', async () => {
  const folder = join(home.path, 'folder');
  mkdirSync(folder);
  const args = ['--server', server.url, 'task', 'run', '/tool touch made', '--name', 'near', '--cwd', '.'];
  const ended = await home.start([...args, '--gate', 'test -f made'], { env: away, cwd: folder }).ended;
  expect(ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/^near {2}done, 1 turn/) });
  expect(existsSync(join(folder, 'made'))).toBe(true);
  expect(existsSync(away.THROUGHLINE_HOME as string)).toBe(false);
  const [conversation] = await home.lines('list');
  expect((await home.lines('summary', conversation.key))[0].lock).toMatchObject({ holder: 'this server' });
});

test('directories in a plan file are relative to the file, and errors name its lines', async () => {
  mkdirSync(join(home.path, 'plans', 'work'), { recursive: true });
  const file = join(home.path, 'plans', 'tasks.yaml');
  writeFileSync(file, 'tasks:\n- goal: x\n  cwd: work\n- goal: y\n  agent: nobody\n');
  const bad = await throughServer('run', '--file', 'plans/tasks.yaml');
  expect(bad).toMatchObject({ code: 3, stdout: '' });
  expect(bad.stderr).toContain('plans/tasks.yaml, line 5: There is no agent "nobody" here.');
  writeFileSync(file, 'tasks:\n- {name: beside, goal: "/tool touch here", cwd: work, gate: test -f here}\n');
  const lines = parseLines((await throughServer('run', '--file', 'plans/tasks.yaml', '--json')).stdout);
  expect(lines.at(-1)).toMatchObject({ kind: 'result', tasks: [{ name: 'beside', state: 'done' }] });
  expect(existsSync(join(home.path, 'plans', 'work', 'here'))).toBe(true);
});

test('commands that read print the same through a named server, through the server of the data home, and embedded', async () => {
  for (const args of [
    ['list', '--json'],
    ['show', 'near', '--json'],
    ['report', 'near'],
    ['usage', '--json'],
  ]) {
    const { stdout, code } = await throughServer(...args);
    expect({ args, code }).toEqual({ args, code: 0 });
    expect(stdout).toBe(await home.ok('task', ...args));
    expect(stdout).toBe(await home.ok('--embedded', 'task', ...args));
    expect(stdout).not.toBe('');
  }
});

test('Ctrl-C cancels the task in the server; a retry that gets SIGTERM leaves the task to the server', async () => {
  const cancelled = home.start(['task', 'run', '/hang', '--name', 'stuck', '--json']);
  await cancelled.until('stdout', /task\.opened/);
  cancelled.kill('SIGINT');
  const { code, stdout } = await cancelled.ended;
  expect({ code, last: parseLines(stdout).at(-1) }).toMatchObject({
    code: 130,
    last: { tasks: [{ state: 'cancelled' }] },
  });
  const retry = home.start(['task', 'retry', 'stuck']);
  const running = async () => (await home.lines('task', 'list', '--state', 'running')).map(({ name }) => name);
  await until(async () => (await running()).includes('stuck'));
  retry.kill('SIGTERM');
  expect(await retry.ended).toMatchObject({
    code: 7,
    stderr: expect.stringContaining('The server continues the tasks'),
  });
  expect(await running()).toEqual(['stuck']);
  expect(await home.ok('task', 'cancel', 'stuck')).toMatch(/^stuck {2}cancelled/);
  expect((await throughServer('show', 'nobody')).code).toBe(4);
});
