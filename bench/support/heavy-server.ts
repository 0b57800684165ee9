import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, type ClientRequest, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { TurnRecord } from '../../src/core/turn/record.ts';
import { NO_USAGE } from '../../src/core/turn/usage.ts';
import { systemClock } from '../../src/host/clock.ts';
import { bootId, systemProcesses } from '../../src/host/processes.ts';
import type { NewConversation } from '../../src/ports/store/conversations.ts';
import type { Write } from '../../src/ports/store/writes.ts';
import type { Store } from '../../src/ports/store.ts';
import { openSqliteStore } from '../../src/stores/sqlite/store.ts';

const PROGRAM = fileURLToPath(new URL('../../bin/throughline.js', import.meta.url));

export interface Sizes {
  /** Turns of a very long conversation. */
  readonly turns: number;
  /** Turns with a very large answer, and its size in bytes. */
  readonly large: number;
  readonly largeBytes: number;
  /** The size of hostile bodies. */
  readonly bodyBytes: number;
}

/** A request, and what to expect of it. */
export interface HeavyCall {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly body?: () => Buffer;
  readonly statuses: readonly number[];
}

export interface Held {
  readonly name: string;
  readonly status: number;
  /** How long the call took. */
  readonly ms: number;
  /** The longest that anybody waited for `/healthz` meanwhile. */
  readonly healthMs: number;
  /** The longest that the server itself worked during such a wait. A wait says also how busy the machine is, and this does not. */
  readonly heldMs: number;
  /** Resident memory at the most, in MB; null: this system does not say. */
  readonly mb: number | null;
}

/** A real server in a process of its own, with conversations that are larger than anybody has. */
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

  /** Makes the call, and asks for `/healthz` again and again meanwhile. */
  async hold({ name, method, path, body }: HeavyCall): Promise<Held> {
    const bytes = body?.();
    forgetPeak(this.pid);
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

  /** A request whose body does not end. */
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

  /** A request whose answer is read and thrown away. 0: the server has cut it off, which it may do with a body that it refuses. */
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

/** How long the thread with the event loop has run on a processor, in all. Null: this system does not say. */
function workedMs(pid: number): number | null {
  try {
    const [, fields = ''] = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8').split(') ');
    const [user, system] = fields.split(' ').slice(11, 13).map(Number);
    return ((user ?? Number.NaN) + (system ?? Number.NaN)) * 10; // Linux counts hundredths of a second
  } catch {
    return null;
  }
}

/** Linux only. */
function peakOf(pid: number): number | null {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  } catch {
    return null;
  }
}

function forgetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // Another system, or not allowed: then the peak is that of the whole time.
  }
}

// ── what is stored ──

const WORDS = 'It rains in the mountains, and the river carries the snow of last winter down to the sea. ';

export function record(n: number, text: string): TurnRecord {
  return {
    ...{ version: 1, n, agent: 'scripted', sessionId: 's', outcome: 'completed', failure: null, usage: NO_USAGE },
    ...{ prompt: [{ type: 'text', text: `Question ${n}` }], parts: [{ type: 'text', text }] },
    ...{ startedAt: 1_700_000_000_000 + n, endedAt: 1_700_000_000_001 + n },
  };
}

function spec(key: string): NewConversation {
  const id = crypto.randomUUID();
  return {
    id,
    key,
    agent: 'scripted',
    driver: 'worker',
    sandbox: id,
    cwd: null,
    place: 'elsewhere',
    restore: {},
    title: key,
  };
}

async function fill(store: Store, { turns, large, largeBytes }: Sizes): Promise<void> {
  const many = (count: number, text: string) => Array.from({ length: count }, (_, i) => record(i + 1, text));
  const text = WORDS.repeat(Math.ceil(largeBytes / WORDS.length));
  const session = { agent: 'scripted', origin: 'rotated', parent: null, watermark: 0 } as const;
  const sessions = Array.from({ length: turns / 5 }, (_, i) => ({ ...session, id: `s${i}` }));
  for (const key of ['long', 'erase'])
    await store.importConversation('local', spec(key), { records: many(turns, 'A river in the mountains.'), sessions });
  await store.importConversation('local', spec('large'), { records: many(large, text), sessions: [] });
  await Promise.all(
    Array.from({ length: turns / 15 }, (_, i) => store.ensureConversation('local', spec(`short ${i}`))),
  );
  await fillEvents(store, 'events', turns, WORDS);
  await fillEvents(store, 'large events', large, text);
}

/** A turn that was told in very many pieces. Written under the lease: as many by an agent would take longer than all else here. */
async function fillEvents(store: Store, key: string, events: number, text: string): Promise<void> {
  const { conversation } = await store.ensureConversation('local', spec(key));
  const asked = {
    conversation: conversation.id,
    requestId: null,
    agent: 'scripted',
    defaultAgent: null,
    retryOf: null,
  };
  const [turn, prompt] = [key, [{ type: 'text', text: 'Go.' }] as const];
  await store.enqueue('local', { ...asked, id: turn, prompt, options: {} });
  const worker = { id: 'bench', process: systemProcesses.self() };
  const what = { place: 'elsewhere', agents: ['scripted'], driver: 'worker', leaseMs: 600_000 } as const;
  const claim = await store.claim({ worker, ...what, conversation: conversation.id });
  if (claim === null) throw new Error('the conversation cannot be claimed');
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } as const;
  const write: Write = { write: 'event', event: { kind: 'turn.update', turn, payload: { acp: 1, update } } };
  for (let done = 0; done < events; done += 250)
    await store.commit(
      claim.fence,
      1 + done,
      Array.from({ length: Math.min(250, events - done) }, () => write),
    );
  await store.release(claim.fence);
}

// ── what is asked ──

const REFUSED = [0, 400, 413];

export function heavyCalls({ turns, bodyBytes }: Sizes): HeavyCall[] {
  const repeated = (head: string, piece: string, tail: string) => () =>
    Buffer.concat([
      Buffer.from(head),
      Buffer.alloc(Math.floor((bodyBytes - 200) / piece.length) * piece.length, piece),
      Buffer.from(tail),
    ]);
  const exported = { format: 'throughline.conversation', version: 1, sessions: [] };
  const conversation = { key: 'imported', title: 'imported', agent: 'scripted', restore: {} };
  const records = () => Array.from({ length: turns }, (_, i) => record(i + 1, WORDS));
  const post = (name: string, statuses: readonly number[], body: () => Buffer): HeavyCall => ({
    ...{ name, method: 'POST', path: '/imports', statuses, body },
  });
  const get = (name: string, path: string): HeavyCall => ({ name, method: 'GET', path, statuses: [200] });
  return [
    post('import of empty lists', REFUSED, repeated('{"exported":[', '[],', '[]]}')),
    post('import of very many numbers', REFUSED, repeated('{"exported":[', '1,', '1]}')),
    post('import of very deep lists', REFUSED, () =>
      Buffer.from(`{"exported":${'['.repeat(bodyBytes / 2 - 99)}${']'.repeat(bodyBytes / 2 - 99)}}`),
    ),
    post('import of one long text', REFUSED, repeated('{"exported":"', 'x', '"}')),
    post('import of one long number', REFUSED, repeated('{"exported":', '1', '}')),
    post('import of many fields', REFUSED, () => {
      const fields = Array.from({ length: Math.floor(bodyBytes / 14) }, (_, i) => `"f${i}":${i % 10}`);
      return Buffer.from(`{"exported":{${fields.join(',')}}}`);
    }),
    post('import of a long conversation', [201], () =>
      Buffer.from(JSON.stringify({ exported: { ...exported, conversation, records: records() } })),
    ),
    get('search', '/search?q=mountains+river&limit=100'),
    get('search of a word that is nowhere', '/search?q=xyzzy'),
    get('list by words', '/conversations?q=river&limit=100'),
    // More than 64 MiB are refused, after they were read.
    { ...get('view of a long conversation', '/conversations/long/view'), statuses: [200, 413] },
    get('view of a large conversation', '/conversations/large/view'),
    get('sessions', '/conversations/long/sessions'),
    get('turns', '/conversations/long/turns?limit=10000'),
    get('turns of a large conversation', '/conversations/large/turns?limit=10000'),
    get('export of a long conversation', '/conversations/long/export'),
    get('export of a large conversation', '/conversations/large/export'),
    get('verify', '/conversations/events/verify'),
    get('verify of large events', '/conversations/large%20events/verify'),
    get('summary', '/conversations/long/summary'),
    get('list', '/conversations?limit=10000'),
    get('board', '/tasks?limit=10000'),
    {
      name: 'fork',
      method: 'POST',
      path: '/conversations/long/fork',
      statuses: [201],
      body: () => Buffer.from('{"key":"copy"}'),
    },
    { name: 'erase', method: 'DELETE', path: '/conversations/erase', statuses: [200] },
  ];
}
