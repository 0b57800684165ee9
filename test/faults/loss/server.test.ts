import { copyFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect } from '../../../src/clients/http/connect.ts';
import { socketTransport } from '../../../src/clients/http/connection/node-transport.ts';
import { httpLiveStreams } from '../../../src/clients/http/live.ts';
import type { LiveState } from '../../../src/ports/engine/live.ts';
import { CliHome, parseLines } from '../../e2e/cli/process.ts';
import { type ServedProcess, serveProcess } from '../../e2e/http/support/served-process.ts';
import { until } from '../harness/until.ts';

let home: CliHome;
beforeEach(() => {
  home = new CliHome();
});
afterEach(() => home.remove());

const data = () => join(home.path, 'home', 'throughline.db');

/** The lines of its log about the storage. Waits until there are `count`, because output is read with a delay. */
async function told({ running }: ServedProcess, count: number) {
  const lines = () =>
    running.stderr
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.includes('"code":"storage_'));
  await until(`there are ${count} lines`, () => lines().length >= count);
  return lines().map((line) => JSON.parse(line));
}

test('while its data file is moved away, a server acknowledges nothing; it continues when the file is back', async () => {
  const server = await serveProcess(home, '--log-level', 'info');
  const { caller } = server;
  await caller.finished((await caller.ok('POST', '/conversations/notes/turns', { prompt: 'One.' })).turn);
  renameSync(data(), `${data()}.kept`);
  for (let i = 0; i < 5; i += 1) {
    expect(await caller.post('/conversations/notes/turns', { prompt: 'Two.' })).toMatchObject({
      status: 503,
      body: { code: 'storage_gone', hint: expect.stringContaining('Put the same file back') },
    });
  }
  expect(await caller.get('//healthz')).toMatchObject({
    status: 503,
    body: { status: 'unready', reasons: [{ code: 'storage_gone' }] },
  });
  expect((await caller.ok('GET', '/conversations/notes/view')).turns).toHaveLength(1);
  const { code, stderr } = await home.run('send', 'notes', 'Three.');
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringContaining('was deleted or moved while it was in use'),
  });

  copyFileSync(`${data()}.kept`, data());
  expect((await caller.post('/conversations/notes/turns', { prompt: 'Four.' })).body.hint).toContain('Restart');

  renameSync(`${data()}.kept`, data());
  const { turn } = await caller.ok('POST', '/conversations/notes/turns', { prompt: 'Five.' });
  await caller.finished(turn);
  expect(turn.n).toBe(2);
  expect((await caller.get('//healthz')).body.status).toBe('ok');
  expect((await told(server, 3)).map(({ code, msg }) => [code, msg])).toEqual([
    ['storage_gone', 'something does not work'],
    ['storage_gone', 'something does not work'], // another file is in its place
    ['storage_gone', 'works again'],
  ]);
  server.running.kill('SIGKILL');
  await server.running.ended;
  expect((await home.show('notes')).turns).toHaveLength(2);
});

test('a live stream reports that the data file is missing until it is back, and does not fill the log', async () => {
  const server = await serveProcess(home, '--log-level', 'info');
  const engine = await connect({ transport: socketTransport(server.socket), token: server.token });
  const live = httpLiveStreams(engine.caller).live('local', [{ feed: 'all', of: 'hints' }]);
  let tries = 0;
  live.onState(({ state }) => {
    if (state === 'connecting') tries += 1;
  });
  const reading = (async () => {
    for await (const _ of live);
  })();
  await until('it is open', () => live.state.state === 'open');
  renameSync(data(), `${data()}.kept`);
  await until('the server says so', async () => (await server.caller.get('//healthz')).status === 503);
  const says = ({ state, failure }: LiveState) => state === 'waiting' && failure?.code === 'storage_gone';
  await until('the stream says so', () => says(live.state));
  const [{ since }, before] = [live.state, tries];
  await until('it was tried again and again', () => tries > before + 2);
  expect(live.state).toMatchObject({ since, failure: { hint: expect.stringContaining('Put the same file back') } });
  renameSync(`${data()}.kept`, data());
  await until('it is open again', () => live.state.state === 'open');
  live.close();
  await reading;
  expect((await told(server, 2)).map(({ msg }) => msg)).toEqual(['something does not work', 'works again']);
  server.running.kill('SIGTERM');
  await server.running.ended;
});

test('while the data file is moved away, commands that read do not change its log', async () => {
  const server = await serveProcess(home);
  const { caller } = server;
  await caller.finished((await caller.ok('POST', '/conversations/notes/turns', { prompt: 'The osprey.' })).turn);
  renameSync(data(), `${data()}.kept`);
  expect(await caller.ok('GET', '/search?q=osprey')).toMatchObject({ hits: [{}] });
  for (const command of [['doctor'], ['list', '--embedded'], ['backup', 'copy.db']]) {
    expect((await home.run(...command)).code).not.toBe(0);
  }
  renameSync(`${data()}.kept`, data());
  await caller.finished((await caller.ok('POST', '/conversations/notes/turns', { prompt: 'Two.' })).turn);
  server.running.kill('SIGKILL');
  await server.running.ended;
  expect((await home.show('notes')).turns).toHaveLength(2);
});

test('a server whose log was deleted stops soon after SIGTERM, and nothing is lost', async () => {
  const server = await serveProcess(home);
  const { caller } = server;
  await caller.finished((await caller.ok('POST', '/conversations/notes/turns', { prompt: 'One.' })).turn);
  rmSync(`${data()}-wal`);
  const { body } = await caller.post('/conversations/notes/turns', { prompt: 'Two.' });
  expect(body).toMatchObject({ code: 'storage_gone', hint: expect.stringContaining('Stop normally') });
  const asked = performance.now();
  server.running.kill('SIGTERM');
  await server.running.ended;
  expect(performance.now() - asked).toBeLessThan(40_000); // it would wait a minute for its storage
  expect((await home.show('notes')).turns).toHaveLength(1);
});

test('a log that was cut after a kill: server, verify and doctor report the loss until it is acknowledged', async () => {
  const killed = await serveProcess(home, '--log-level', 'warn');
  for (let i = 0; i < 10; i += 1) {
    await killed.caller.finished(
      (await killed.caller.ok('POST', '/conversations/notes/turns', { prompt: `${i}` })).turn,
    );
  }
  killed.running.kill('SIGKILL');
  await killed.running.ended;
  truncateSync(`${data()}-wal`, Math.floor(statSync(`${data()}-wal`).size * 0.7));

  const server = await serveProcess(home, '--log-level', 'info');
  const { caller } = server;
  const { turns } = await caller.ok('GET', '/conversations/notes/view');
  expect(turns.length).toBeLessThan(10);
  expect(await caller.get('//healthz')).toMatchObject({
    status: 200,
    body: { status: 'degraded', ready: true, reasons: [{ code: 'storage_lost' }] },
  });
  expect(await told(server, 1)).toMatchObject([
    { code: 'storage_lost', message: expect.stringMatching(/ events of 1 conversation/) },
  ]);
  expect(await caller.ok('GET', '/conversations/notes/verify')).toMatchObject({
    broken: null,
    lost: { had: { turns: 10 }, has: { turns: turns.length } },
  });
  const verified = await home.run('verify', 'notes');
  expect(verified).toMatchObject({ code: 1, stderr: expect.stringContaining('are missing: it had 10 turns') });
  const looked = await home.run('doctor', '--json');
  expect(looked.code).toBe(1);
  const found = parseLines(looked.stdout).filter(({ check }) => check === 'losses');
  expect(found.map(({ subject }) => subject)).toEqual([expect.stringMatching(/^data, /), 'conversation notes']);
  // A repair does not hide the loss.
  expect((await home.run('doctor', '--fix')).stdout).toContain('--accept-loss: Stop reporting it');

  expect(await home.ok('doctor', '--accept-loss')).toContain('done: Stop reporting it');
  await until('the server no longer says so', async () => (await caller.get('//healthz')).body.status === 'ok');
  await home.ok('verify', 'notes');
  server.running.kill('SIGTERM');
  await server.running.ended;
  const embedded = await home.run('list');
  expect(embedded).toMatchObject({ code: 0, stderr: '' });
});

test('an embedded command reports on stderr that stored data is missing, and verify reports a conversation that is lost completely', async () => {
  await home.ok('send', 'notes', 'One.');
  copyFileSync(data(), `${data()}.old`);
  await home.ok('send', 'notes', 'Two.');
  await home.ok('send', 'lost', 'Hello.');
  const { id } = (await home.show('lost')).conversation;
  renameSync(`${data()}.old`, data());
  const { code, stderr } = await home.run('send', 'notes', 'Three.');
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('Stored data is missing: ') });
  const lost = await home.run('verify', id, '--json');
  expect(lost).toMatchObject({ code: 1, stderr: expect.stringContaining('and nothing of it is left.') });
  expect(parseLines(lost.stdout)).toMatchObject([
    { conversationId: id, events: 0, intact: false, lost: { had: { turns: 1 }, has: null } },
  ]);
  // The key was lost as well, so a lost conversation cannot be told from one that never existed.
  const unknown = await home.run('verify', 'lost');
  expect(unknown).toMatchObject({
    code: 4,
    stderr: expect.stringMatching(
      /There is no conversation "lost"\. Stored conversations are missing.*verify it by that/,
    ),
  });
});
