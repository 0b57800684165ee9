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
const address = () => join(dataHome(), 'server', 'address.json');

/** The app of the example, until its first answer. */
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
  const [, server = ''] = /^server (\d+)$/.exec(lines[0] ?? '') ?? [];
  const [, link = ''] = /^window (http.*)$/.exec(lines[1] ?? '') ?? [];
  return { app, server: Number(server), link, reply: lines[2] };
}

test('the server of a desktop app ends with the app when that is killed, and lets the running turn end', async () => {
  const { app, server, link, reply } = await startApp();
  expect(reply).toBe('Noted: The codeword is amber.');
  expect((await fetch(link, { redirect: 'manual' })).status).toBeLessThan(400);
  const caller = new Caller(new URL(link).origin, {
    authorization: `Bearer ${await home.ok('keys', 'create', 'test', '--scopes', 'read,prompt,admin').then((key) => key.trim())}`,
  });
  await caller.ok('POST', '/conversations', { key: 'slow', agent: 'scripted', cwd: home.path });
  const { turn } = await caller.ok('POST', '/conversations/slow/turns', { prompt: '/await go\n/say finished' });
  await until('it runs', async () => (await caller.ok('GET', `/turns/${turn.id}`)).state === 'running');
  app.stderr.destroy(); // nobody reads the server's log any more
  app.kill('SIGKILL');
  await until('the server stops', async () => !(await fetch(new URL('/readyz', link)).catch(() => null))?.ok);
  expect(isAlive(server)).toBe(true);
  writeFileSync(join(home.path, 'go'), '');
  await until('the server has ended', () => !isAlive(server));
  expect(existsSync(address())).toBe(false);
  const view = await home.show('slow');
  expect(view.turns).toMatchObject([{ state: 'completed', reply: 'finished' }]);
});

test('it ends when the app closes the pipe while the server is still starting', async () => {
  const started = home.start(['serve', '--port', '0', '--json', '--end-with-parent']); // its stdin is a pipe that is closed at once
  expect(await started.ended).toMatchObject({ code: 0 });
  expect(existsSync(address())).toBe(false);
});

test('a signal still ends it while the app lives', async () => {
  const { server } = await startApp();
  process.kill(server, 'SIGTERM');
  await until('the server has ended', () => !isAlive(server));
  expect(existsSync(address())).toBe(false);
});

test('without a pipe as stdin it is refused: nobody could see the parent end', async () => {
  const child = spawn(process.execPath, [PROGRAM, 'serve', '--port', '0', '--end-with-parent'], {
    env: home.environment(),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const said: string[] = [];
  child.stderr.on('data', (bytes) => said.push(String(bytes)));
  expect(await new Promise((resolve) => child.once('close', resolve))).toBe(2);
  expect(said.join('')).toContain('--end-with-parent needs a pipe as stdin');
});
