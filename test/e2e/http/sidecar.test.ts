import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isAlive } from '../../contracts/liveness.ts';
import { until } from '../../faults/harness/until.ts';
import { PROGRAM } from '../../program.ts';
import { CliHome } from '../cli/process.ts';
import { Caller } from './support/caller.ts';

const DESKTOP = fileURLToPath(new URL('../../../examples/desktop.ts', import.meta.url));

let home: CliHome;
const apps: ChildProcess[] = [];
beforeEach(() => {
  home = new CliHome();
});
afterEach(() => {
  for (const app of apps.splice(0)) app.kill('SIGKILL');
  return home.remove();
});

const dataHome = () => join(home.path, 'home');
const addressFile = () => join(dataHome(), 'server', 'address.json');

/** Starts the app of the example, and waits for its first answer. */
async function startApp() {
  const app = spawn(process.execPath, [DESKTOP, dataHome()], {
    env: home.environment(),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  apps.push(app);
  const lines: string[] = [];
  for await (const line of createInterface({ input: app.stdout })) {
    if (lines.push(line) === 3) break;
  }
  const [, pid = ''] = /^server (\d+)$/.exec(lines[0] ?? '') ?? [];
  const [, link = ''] = /^window (http.*)$/.exec(lines[1] ?? '') ?? [];
  return { app, serverPid: Number(pid), link, reply: lines[2] };
}

test('when a desktop app is killed, its server finishes the running turn and ends', async () => {
  const { app, serverPid, link, reply } = await startApp();
  expect(reply).toBe('Noted: The codeword is amber.');
  expect((await fetch(link, { redirect: 'manual' })).status).toBeLessThan(400);
  const caller = new Caller(new URL(link).origin, {
    authorization: `Bearer ${await home.ok('keys', 'create', 'test', '--scopes', 'read,prompt,admin').then((key) => key.trim())}`,
  });
  await caller.ok('POST', '/conversations', { key: 'slow', agent: 'scripted', cwd: home.path });
  const { turn } = await caller.ok('POST', '/conversations/slow/turns', { prompt: '/await go\n/say finished' });
  await until('the turn is running', async () => (await caller.ok('GET', `/turns/${turn.id}`)).state === 'running');
  app.stderr.destroy(); // nobody reads the server's log any more
  app.kill('SIGKILL');
  await until('the server is stopping', async () => !(await fetch(new URL('/readyz', link)).catch(() => null))?.ok);
  expect(isAlive(serverPid)).toBe(true);
  writeFileSync(join(home.path, 'go'), '');
  await until('the server has ended', () => !isAlive(serverPid));
  expect(existsSync(addressFile())).toBe(false);
  const view = await home.show('slow');
  expect(view.turns).toMatchObject([{ state: 'completed', reply: 'finished' }]);
});

test('the server of a desktop app ends when the app closes the pipe while the server is still starting', async () => {
  const started = home.start(['serve', '--port', '0', '--json', '--end-with-parent']); // its stdin is a pipe that is closed at once
  expect(await started.ended).toMatchObject({ code: 0 });
  expect(existsSync(addressFile())).toBe(false);
});

test('a signal ends the server of a desktop app while the app is running', async () => {
  const { serverPid } = await startApp();
  process.kill(serverPid, 'SIGTERM');
  await until('the server has ended', () => !isAlive(serverPid));
  expect(existsSync(addressFile())).toBe(false);
});

test('--end-with-parent is refused if stdin is not a pipe, because the server could not notice the end of its parent', async () => {
  const child = spawn(process.execPath, [PROGRAM, 'serve', '--port', '0', '--end-with-parent'], {
    env: home.environment(),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const stderr: string[] = [];
  child.stderr.on('data', (bytes) => stderr.push(String(bytes)));
  expect(await new Promise((resolve) => child.once('close', resolve))).toBe(2);
  expect(stderr.join('')).toContain('--end-with-parent needs a pipe as stdin');
});
