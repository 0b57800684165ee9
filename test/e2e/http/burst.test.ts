import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { ServedHome } from './support/served-home.ts';

const CONNECTIONS = 100;

/**
 * Asks for `/healthz` on so many connections at once, in a process of its own, and writes how many were answered. Makes a file when all
 * requests are on their way.
 */
const CLIENT = `
  const { request } = require('node:http');
  const { writeFileSync } = require('node:fs');
  const { where, count, sent } = JSON.parse(process.argv[1]);
  let [left, answered] = [count, 0];
  for (let n = 0; n < count; n += 1) {
    const headers = { host: where.socketPath ? 'localhost' : '127.0.0.1:' + where.port };
    const asked = request({ ...where, path: '/healthz', agent: false, headers }, (response) => {
      response.resume().on('end', () => { answered += response.statusCode === 200 ? 1 : 0; });
    });
    asked.on('finish', () => { left -= 1; if (left === 0) writeFileSync(sent, ''); });
    asked.on('error', (error) => console.error(error.message)).end();
  }
  process.on('exit', () => console.log(answered));`;

/**
 * How many turns of the event loop the burst takes, from its first answer to its last, when every turn is long. The first turn lasts until
 * all of it has come: how fast the client is does not count.
 */
async function turnsFor(home: ServedHome, where: object): Promise<{ turns: number; answered: string }> {
  const sent = join(home.path, 'sent');
  const args = ['-e', CLIENT, JSON.stringify({ where, count: CONNECTIONS, sent })];
  const client = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  for (const until = performance.now() + 60_000; !existsSync(sent) && performance.now() < until; )
    Atomics.wait(nothing, 0, 0, 5);
  let turns = 0;
  let isOver = false;
  const turn = () => {
    const answers = home.log.filter((line) => line.includes('"healthz"')).length;
    if (answers > 0 && answers < CONNECTIONS) turns += 1;
    for (const until = performance.now() + 5; performance.now() < until; );
    if (!isOver) setImmediate(turn);
  };
  turn();
  const [answered] = await Promise.all([text(client.stdout), once(client, 'exit')]);
  isOver = true;
  return { turns, answered: answered.trim() };
}

test.each(['port', 'socket'])(
  'a burst of connections is accepted in few turns of the event loop, by %s',
  async (by) => {
    await using home = await ServedHome.start({ server: { accepts: 16 } });
    await home.shared();
    const where = by === 'port' ? { host: '127.0.0.1', port: home.port } : { socketPath: home.socket };
    const { turns, answered } = await turnsFor(home, where);
    expect(answered).toBe(String(CONNECTIONS));
    expect(turns).toBeLessThan(CONNECTIONS / 2);
  },
);

test('a server that stops while its sockets are being shared stops at once, and accepts nothing more', async () => {
  const home = await ServedHome.start({ server: { accepts: 16 } });
  const { url } = home;
  await home[Symbol.asyncDispose]();
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
});

/** Uses up all file numbers before the sockets are shared. */
const CROWDED = `
  import { openSync } from 'node:fs';
  import { createServer } from 'node:http';
  import { listenOnPort, shareListening } from ${JSON.stringify(new URL('../../../src/faces/http/listen.ts', import.meta.url))};
  const listener = createServer();
  await listenOnPort(listener, '127.0.0.1', 0);
  try { for (;;) openSync('/dev/null'); } catch {}
  await shareListening([{ listener, others: [createServer()] }], new AbortController().signal);
  console.log(listener.listening);
  process.exit();`;

test('a server that has no room for the process that shares its sockets goes on without', async () => {
  const args = ['-c', 'ulimit -n 60; exec "$0" --input-type=module -e "$1"', process.execPath, CROWDED];
  const child = spawn('sh', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  expect(await text(child.stdout)).toBe('true\n');
});
