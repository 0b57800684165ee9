import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Measure } from '../finding.ts';
import { AGENT_COMMAND } from '../support/acp-client.ts';

const PROGRAM = fileURLToPath(new URL('../../bin/throughline.js', import.meta.url));
const EVERY_MS = 50;

/**
 * Many conversations begin at once. Each has to start its own agent, and each prompt uses its own connection. Measures how long requests of
 * `/healthz` on new connections wait, until the last turn has ended.
 */
const measure: Measure = async ({ quick }) => {
  const count = quick ? 20 : 200;
  const home = mkdtempSync(join(process.env.THROUGHLINE_BENCH_DIR ?? tmpdir(), 'throughline-burst-'));
  const config = { agents: { acp: { adapter: 'acp', command: AGENT_COMMAND } } };
  writeFileSync(join(home, 'throughline.config.json'), JSON.stringify(config));
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE, HOME: home, THROUGHLINE_HOME: home };
  const args = [PROGRAM, 'serve', '--json', '--port', '0', '--log-level', 'warn'];
  const server = spawn(process.execPath, args, { cwd: home, env, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const ask = await asking(server, home);
    await ask('POST', '/v1/conversations/first/turns', { prompt: 'Hello.' });
    await pause(1_000); // by then the agent was probed, and the server has completely started
    const over = new AbortController();
    const watching = watchHealth(ask, over.signal);
    const start = performance.now();
    await Promise.all(Array.from({ length: count }, (_, n) => turn(ask, n)));
    const seconds = (performance.now() - start) / 1_000;
    over.abort();
    const waits = await watching;
    return [
      {
        name: `/healthz on fresh connections while ${count} conversations begin at once, longest wait`,
        value: Math.max(...waits),
        unit: 'ms',
        target: { kind: 'must', most: 1_000 },
        note: `${waits.length} requests, one every ${EVERY_MS} ms, in the ${seconds.toFixed(0)} s until all turns had ended; agents, server and clients share the machine`,
      },
    ];
  } finally {
    server.kill('SIGTERM');
    await once(server, 'exit');
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
};

type Ask = (method: string, path: string, body?: object) => Promise<{ status: number; text: string; ms: number }>;

async function turn(ask: Ask, n: number): Promise<void> {
  const { text } = await ask('POST', `/v1/conversations/c${n}/turns`, { prompt: 'Hello.' });
  const { id } = JSON.parse(text).turn;
  for (;;) {
    const { status } = await ask('GET', `/v1/turns/${id}/answer?wait=60`);
    if (status === 200) return;
    if (status !== 409) throw new Error(`The turn was not answered: ${status}`);
  }
}

async function watchHealth(ask: Ask, over: AbortSignal): Promise<number[]> {
  const asked: Promise<number>[] = [];
  for (; !over.aborted; await pause(EVERY_MS)) asked.push(ask('GET', '/healthz').then(({ ms }) => ms));
  return Promise.all(asked);
}

/** A function that makes each request on its own connection. */
async function asking(server: ChildProcess, home: string): Promise<Ask> {
  if (server.stdout === null) throw new Error('The server has no output.');
  const [line] = await once(createInterface({ input: server.stdout }), 'line');
  const { url } = JSON.parse(line);
  const token = readFileSync(join(home, 'server', 'token'), 'utf8').trim();
  return (method, path, body) =>
    new Promise((resolve, reject) => {
      const start = performance.now();
      const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) };
      const asked = request(`${url}${path}`, { method, agent: false, headers }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text, ms: performance.now() - start }));
      });
      asked.on('error', reject).end(body && JSON.stringify(body));
    });
}

export default measure;
