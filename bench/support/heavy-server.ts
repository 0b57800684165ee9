import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, type ClientRequest, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/host/clock.ts';
import { bootId } from '../../src/host/processes.ts';
import { openSqliteStore } from '../../src/stores/sqlite/store.ts';
import type { HeavyCall } from './heavy-calls.ts';
import { fill, type Sizes } from './heavy-store.ts';

const PROGRAM = fileURLToPath(new URL('../../bin/throughline.js', import.meta.url));

export interface Held {
  readonly name: string;
  readonly status: number;
  /** How long the call took. */
  readonly ms: number;
  /** The longest wait for `/healthz` during the call. */
  readonly healthMs: number;
  /** The most processor time that the server used during such a wait. Unlike the wait, it does not depend on how busy the machine is. */
  readonly heldMs: number;
  /** The peak of the resident memory, in MB. Null: this system does not report it. */
  readonly mb: number | null;
}

/** A real server in its own process, with unusually large conversations. */
export class HeavyServer {
  readonly home: string;
  readonly #child: ChildProcess;
  readonly #port: number;
  readonly #token: string;

  private constructor(home: string, child: ChildProcess, port: number) {
    this.home = home;
    this.#child = child;
    this.#port = port;
    this.#token = readFileSync(join(home, 'server', 'token'), 'utf8').trim();
  }

  static async start(sizes: Sizes): Promise<HeavyServer> {
    const home = mkdtempSync(join(process.env.THROUGHLINE_BENCH_DIR ?? tmpdir(), 'throughline-heavy-'));
    const store = await openSqliteStore({ file: join(home, 'throughline.db'), clock: systemClock, boot: bootId() });
    await fill(store, sizes);
    await store.close();
    writeFileSync(
      join(home, 'throughline.config.json'),
      JSON.stringify({ agents: { scripted: { adapter: 'scripted' } } }),
    );
    const env = {
      PATH: process.env.PATH,
      HOME: home,
      THROUGHLINE_HOME: home,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    };
    const child = spawn(process.execPath, [PROGRAM, 'serve', '--port', '0', '--home', home, '--log-level', 'warn'], {
      cwd: home,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const address = await firstAddress(child);
    return new HeavyServer(home, child, Number(new URL(address).port));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Makes the call, and requests `/healthz` again and again until it is answered. */
  async hold({ name, method, path, body }: HeavyCall): Promise<Held> {
    const bytes = body?.();
    resetPeak(this.pid);
    const over = new AbortController();
    const waits: Wait[] = [];
    const asking = this.#askHealth(waits, over.signal);
    await pause(50);
    const start = performance.now();
    const status = await this.call(method, `/v1${path}`, bytes);
    const ms = performance.now() - start;
    await pause(50);
    over.abort();
    await asking;
    const most = (what: keyof Wait) => Math.max(...waits.map((wait) => wait[what]));
    return { name, status, ms, healthMs: most('ms'), heldMs: most('heldMs'), mb: peakOf(this.pid) };
  }

  /** Sends the beginning of a request. Its body does not end. */
  begin(method: string, path: string, begin: string): ClientRequest {
    const headers = { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' };
    const asked = request({ host: '127.0.0.1', port: this.#port, path, method, headers });
    asked.on('error', () => {}).write(begin);
    return asked;
  }

  async text(path: string): Promise<string> {
    const headers = { authorization: `Bearer ${this.#token}` };
    return (await fetch(`http://127.0.0.1:${this.#port}${path}`, { headers })).text();
  }

  /** Makes a request and discards the answer. 0: the server closed the connection, which it may do with a body that it refuses. */
  call(method: string, path: string, body?: Buffer, agent?: Agent): Promise<number> {
    return new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${this.#token}`,
        ...(body && { 'content-type': 'application/json', 'content-length': body.length }),
      };
      const asked = request(
        { host: '127.0.0.1', port: this.#port, path, method, headers, ...(agent && { agent }) },
        (response) => {
          response
            .resume()
            .on('end', () => resolve(response.statusCode ?? 0))
            .on('error', reject);
        },
      );
      asked.on('error', (error) => (body === undefined ? reject(error) : resolve(0))).end(body);
    });
  }

  async #askHealth(waits: Wait[], signal: AbortSignal): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!signal.aborted) {
      const [start, workedBefore] = [performance.now(), workedMs(this.pid)];
      await this.call('GET', '/healthz', undefined, agent);
      const [ms, worked] = [performance.now() - start, workedMs(this.pid)];
      waits.push({ ms, heldMs: workedBefore === null || worked === null ? ms : worked - workedBefore });
      await pause(10);
    }
    agent.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
    rmSync(this.home, { recursive: true, force: true });
  }
}

async function firstAddress(child: ChildProcess): Promise<string> {
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  for await (const chunk of child.stdout ?? []) {
    said += chunk;
    const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(said) ?? [];
    if (address !== undefined) return address;
  }
  throw new Error(`The server did not start: ${said}`);
}

interface Wait {
  readonly ms: number;
  readonly heldMs: number;
}

/** The processor time of the thread with the event loop so far. Null: this system does not report it. */
function workedMs(pid: number): number | null {
  try {
    const [, fields = ''] = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8').split(') ');
    const [user, system] = fields.split(' ').slice(11, 13).map(Number);
    return ((user ?? Number.NaN) + (system ?? Number.NaN)) * 10; // Linux counts hundredths of a second
  } catch {
    return null;
  }
}

/** The peak of the resident memory, in MB. Linux only. */
function peakOf(pid: number): number | null {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  } catch {
    return null;
  }
}

function resetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // Not Linux, or not allowed. Then the peak is that since the start.
  }
}
