import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { ServedHome } from './support/served-home.ts';

const CONNECTIONS = 100;

/**
 * Requests `/healthz` over many connections at once, in a process of its own, and prints how many were answered. Creates the file `sent`
 * when all requests are sent.
 */
const CLIENT = `
  const { request } = require('node:http');
  const { writeFileSync } = require('node:fs');
  const { where, count, sent } = JSON.parse(process.argv[1]);
  let [left, answered] = [count, 0];
  for (let n = 0; n < count; n += 1) {
    const headers = { host: where.socketPath ? 'localhost' : '127.0.0.1:' + where.port };
    const outgoing = request({ ...where, path: '/healthz', agent: false, headers }, (response) => {
      response.resume().on('end', () => { answered += response.statusCode === 200 ? 1 : 0; });
    });
    outgoing.on('finish', () => { left -= 1; if (left === 0) writeFileSync(sent, ''); });
    outgoing.on('error', (error) => console.error(error.message)).end();
  }
  process.on('exit', () => console.log(answered));`;

/**
 * Counts the turns of the event loop from the first answer to the last, while every turn is long. Blocks the event loop until the client has
 * sent all requests, so that the result does not depend on the speed of the client.
 */
async function loopTurnsFor(home: ServedHome, where: object): Promise<{ turns: number; answered: string }> {
  const sent = join(home.path, 'sent');
  const args = ['-e', CLIENT, JSON.stringify({ where, count: CONNECTIONS, sent })];
  const client = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const unchanged = new Int32Array(new SharedArrayBuffer(4));
  for (const until = performance.now() + 60_000; !existsSync(sent) && performance.now() < until; )
    Atomics.wait(unchanged, 0, 0, 5); // sleeps for 5 ms without a turn of the event loop
  let turns = 0;
  let isOver = false;
  const turn = () => {
    const answers = home.log.filter((line) => line.includes('"healthz"')).length;
    if (answers > 0 && answers < CONNECTIONS) turns += 1;
    for (const until = performance.now() + 5; performance.now() < until; ); // makes the turn long
    if (!isOver) setImmediate(turn);
  };
  turn();
  const [answered] = await Promise.all([text(client.stdout), once(client, 'exit')]);
  isOver = true;
  return { turns, answered: answered.trim() };
}

test.each(['port', 'socket'])(
  'a burst of connections to the %s is accepted in few turns of the event loop',
  async (by) => {
    await using home = await ServedHome.start({ server: { accepts: 16 } });
    await home.shared();
    const where = by === 'port' ? { host: '127.0.0.1', port: home.port } : { socketPath: home.socket };
    const { turns, answered } = await loopTurnsFor(home, where);
    expect(answered).toBe(String(CONNECTIONS));
    expect(turns).toBeLessThan(CONNECTIONS / 2);
  },
);

test('a server can stop while its sockets are being shared, and then accepts no connection', async () => {
  const home = await ServedHome.start({ server: { accepts: 16 } });
  const { url } = home;
  await home[Symbol.asyncDispose]();
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
});

/** Uses up all file descriptors before the sockets are shared. */
const WITHOUT_DESCRIPTORS = `
  import { openSync } from 'node:fs';
  import { createServer } from 'node:http';
  import { listenOnPort, shareListening } from ${JSON.stringify(new URL('../../../src/faces/http/listen.ts', import.meta.url))};
  const listener = createServer();
  await listenOnPort(listener, '127.0.0.1', 0);
  try { for (;;) openSync('/dev/null'); } catch {}
  await shareListening([{ listener, others: [createServer()] }], new AbortController().signal);
  console.log(listener.listening);
  process.exit();`;

test('a server without free file descriptors keeps listening, without sharing its sockets', async () => {
  const args = ['-c', 'ulimit -n 60; exec "$0" --input-type=module -e "$1"', process.execPath, WITHOUT_DESCRIPTORS];
  const child = spawn('sh', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  expect(await text(child.stdout)).toBe('true\n');
});
