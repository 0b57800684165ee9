import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { ScriptedOptions } from '../../../../src/agents/scripted/options.ts';
import { type Composed, compose, composeDoctor } from '../../../../src/compose.ts';
import type { Scope } from '../../../../src/core/key.ts';
import { insightOf } from '../../../../src/doctor/insight.ts';
import type { EngineSettings } from '../../../../src/engine/parts.ts';
import { loopbackDoor } from '../../../../src/faces/http/access/door.ts';
import { Failures } from '../../../../src/faces/http/access/failures.ts';
import { freshKey } from '../../../../src/faces/http/access/secrets.ts';
import { SignIn } from '../../../../src/faces/http/access/sign-in.ts';
import { createApp } from '../../../../src/faces/http/app.ts';
import { type HttpServer, type ServerOptions, startServer } from '../../../../src/faces/http/server.ts';
import { type BeginStream, STREAM } from '../../../../src/faces/http/streams/event-stream.ts';
import { createLog } from '../../../../src/faces/http/telemetry/log.ts';
import { Metrics } from '../../../../src/faces/http/telemetry/metrics.ts';
import { ProcessHealth } from '../../../../src/host/health.ts';
import { storeTrackers } from '../../../../src/library/tracker/tracker.ts';
import type { Tasks } from '../../../../src/ports/tasks.ts';
import { Caller } from './caller.ts';

export const TOKEN = 'the-token-of-this-test';

export interface ServedOptions {
  readonly agents?: Readonly<Record<string, Partial<ScriptedOptions>>>;
  readonly engine?: Partial<EngineSettings>;
  readonly server?: Partial<ServerOptions>;
  /** The directory of the data. Left out: one in the temporary directory. */
  readonly home?: string;
}

/** A data home in a temporary directory with its server in this process, on a real port and a real socket. */
export class ServedHome {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-http-')));
  readonly socket = join(this.path, 'socket');
  readonly metrics = new Metrics();
  /** All lines of the server's log. */
  readonly log: string[] = [];
  readonly #options: ServedOptions;
  #composed!: Composed;
  #tasks!: Tasks;
  #server!: HttpServer;

  private constructor(options: ServedOptions) {
    this.#options = options;
  }

  static async start(options: ServedOptions = {}): Promise<ServedHome> {
    const home = new ServedHome(options);
    await home.up();
    return home;
  }

  /** Starts the server, on a free port. */
  async up(): Promise<void> {
    const { agents = { scripted: {} }, engine = {}, server = {} } = this.#options;
    const settings = Object.entries(agents).map(([name, options]) => [name, { adapter: 'scripted', options }]);
    const log = createLog('debug', [TOKEN], (line) => this.log.push(line));
    this.#composed = await compose({
      home: this.#options.home ?? join(this.path, 'home'),
      settings: { agents: Object.fromEntries(settings), defaultAgent: Object.keys(agents)[0] },
      engine: { claims: 'all', ...engine },
      telemetry: this.metrics,
      onBug: (err) => log.error({ err }, 'internal error'),
      onTrouble: ({ code, message }) => log.warn({ code, message }, 'trouble'),
      health: new ProcessHealth(({ code }, gone) => log.error({ code, gone }, 'health')),
    });
    this.#tasks = await this.#composed.tasks();
    this.#server = await startServer({
      tasks: this.#tasks,
      trackers: storeTrackers(this.#composed.parts),
      ...{ engine: this.#composed.engine, keys: this.#composed.parts.store, token: TOKEN, log, metrics: this.metrics },
      health: this.#composed.parts.health,
      insight: insightOf(this.#composed.parts, 'test', () => this.#examine()),
      ...{ version: 'test', socket: this.socket, host: '127.0.0.1', port: 0, ...server },
    });
  }

  async #examine() {
    const doctor = await composeDoctor({ home: this.#options.home ?? join(this.path, 'home') }, async () => null);
    const found = await doctor.examine().finally(() => doctor.close());
    return found.map(({ repair: _, process: __, repairedBy = '--fix' as const, isNote = false, ...rest }) => ({
      ...{ ...rest, isNote, repairedBy: rest.remedy === null ? null : repairedBy },
    }));
  }

  /** Stops the server. */
  async down(graceMs = 0): Promise<void> {
    await this.#server.close({ graceMs });
  }

  get engine() {
    return this.#composed.engine;
  }

  get health() {
    return this.#composed.parts.health;
  }

  get url(): string {
    return this.#server.url;
  }

  get port(): number {
    return this.#server.port;
  }

  /** Resolves when the server shares its sockets, so that it accepts bursts of connections. */
  shared(): Promise<void> {
    return this.#server.shared;
  }

  /** A new sign-in link. */
  newLink(): Promise<string> {
    return this.#server.newLink();
  }

  /** Sends requests to the same interface without a network. */
  inProcess(): (address: string, init: RequestInit) => Promise<Response> {
    const { engine, parts } = this.#composed;
    const tasks = this.#tasks;
    const never = new AbortController().signal;
    const log = createLog('debug', [TOKEN], (line) => this.log.push(line));
    const signIn = new SignIn(TOKEN, parts.store, Date.now);
    const failures = new Failures(log, Date.now);
    const app = createApp({
      engine,
      tasks,
      trackers: storeTrackers(parts),
      keeper: { token: TOKEN, signIn, keys: parts.store, owner: 'local', now: Date.now, failures },
      log,
      ...{ metrics: this.metrics, version: 'test', stream: STREAM, mostReaders: 9 },
      ...{ draining: never, shutdown: never, newLink: async () => ({ link: '', expiresAt: 0, owner: '', scopes: [] }) },
    });
    const env = { door: loopbackDoor(1), begin: beginNowhere };
    return async (address, { headers, ...init }) =>
      app.request(
        `http://127.0.0.1:1${address}`,
        { ...init, headers: { host: '127.0.0.1:1', ...headers } as never },
        env,
      );
  }

  /** A caller with the token. */
  get caller(): Caller {
    return new Caller(this.url, { authorization: `Bearer ${TOKEN}` });
  }

  /** A new key with these scopes, and a caller with it. */
  async key(owner: string, scopes: readonly Scope[], expiresAt: number | null = null, owners: string | null = null) {
    const { id, hash, key } = freshKey();
    await this.#composed.parts.store.createKey(owner, { id, hash, name: 'for a test', scopes, owners, expiresAt });
    return { id, key, caller: new Caller(this.url, { authorization: `Bearer ${key}` }) };
  }

  revoke(owner: string, id: string) {
    return this.#composed.parts.store.revokeKey(owner, id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.down();
    rmSync(this.path, { recursive: true, force: true, maxRetries: 20 });
    expect(
      this.log.filter((line) => line.includes('internal error')),
      'internal errors in the log',
    ).toEqual([]);
  }
}

/** A stream without a connection: nobody reads what is written to it. */
const beginNowhere: BeginStream = (headers, write) => {
  const socket = new Socket().on('error', () => {});
  const outgoing = new ServerResponse(new IncomingMessage(socket));
  outgoing.assignSocket(socket);
  outgoing.writeHead(200, headers);
  write(outgoing);
  return new Response(null, { headers });
};
