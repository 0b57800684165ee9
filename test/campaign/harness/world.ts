import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { CliHome, type Ended, parseLines, type Running } from '../../e2e/cli/process.ts';
import { Caller } from '../../e2e/http/support/caller.ts';
import { settingsFor } from '../../faults/harness/agents.ts';
import { endMarked, MARK, marked } from '../../faults/harness/marked.ts';
import { until } from '../../faults/harness/until.ts';
import { lastingPort } from '../../faults/server/lasting-port.ts';
import { bugsIn } from './checks.ts';

export const OWNERS = ['ann', 'bob', 'cid'] as const;
export const ALL_SCOPES = 'read,prompt,approve,admin';

interface WorldOptions {
  /** Agents by name, as in the settings file. Left out: scripted ones of every kind. Each gets the mark of this world. */
  readonly agents?: (root: string) => Readonly<Record<string, object>>;
  /** More settings. `root`: a directory for files outside of the data home. */
  readonly settings?: (root: string) => object;
  readonly owners?: readonly string[];
  /** Runs before the first server starts. */
  readonly prepare?: (world: World) => Promise<void>;
}

/**
 * A data home, the real executable that serves it, and keys of several owners. Tests see it only from outside: by HTTP, by the command
 * line, and by what its agents append to their ledgers.
 */
export class World {
  readonly home: CliHome;
  readonly mark = randomUUID();
  readonly port: number;
  readonly url: string;
  kills = 0;
  agentKills = 0;
  freezes = 0;
  agentFreezes = 0;
  /** What all servers, and commands that submit, wrote to stderr. */
  log = '';
  readonly #keys = new Map<string, string>();
  #server: Running | null = null;

  static async start(options: WorldOptions = {}): Promise<World> {
    const world = new World(await lastingPort(), options);
    await options.prepare?.(world);
    await world.up();
    for (const owner of options.owners ?? OWNERS) await world.newKey(owner);
    return world;
  }

  private constructor(port: number, { agents, settings }: WorldOptions) {
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
    this.home = new CliHome();
    mkdirSync(join(this.home.path, 'ledgers'));
    const given = agents?.(this.home.path) ?? settingsFor(this.mark).agents;
    const marking = Object.entries(given).map(([name, agent]) => {
      const { env, ...rest } = agent as { env?: object };
      return [name, { ...rest, env: { ...env, [MARK]: this.mark } }];
    });
    this.home.configure({
      defaultAgent: Object.keys(given)[0],
      agents: Object.fromEntries(marking),
      ...settings?.(this.home.path),
    });
  }

  // ── the server ──

  /** Starts the server and waits until it serves. */
  async up(): Promise<void> {
    this.begin();
    await this.served();
  }

  /** Starts the server, and does not wait for it. */
  begin(): void {
    const args = ['serve', '--json', '--log-level', 'warn', '--port', String(this.port), '--grace', '1'];
    this.#server = this.home.start(args);
  }

  async served(): Promise<void> {
    await this.server.until('stdout', /^\{"kind":"serving".*\}$/m);
  }

  get server(): Running {
    if (this.#server === null) throw new Error('no server was started');
    return this.#server;
  }

  async kill(): Promise<void> {
    this.server.kill('SIGKILL');
    this.kills += 1;
    await this.#over();
  }

  /** Stops the server with SIGTERM. */
  async stop(): Promise<Ended> {
    this.server.kill('SIGTERM');
    return this.#over();
  }

  async freeze(ms: number): Promise<void> {
    this.freezes += 1;
    await standStill(this.server.pid, ms);
  }

  async #over(): Promise<Ended> {
    const ended = await this.server.ended;
    this.log += ended.stderr;
    return ended;
  }

  // ── agents ──

  agents(): number[] {
    return marked(this.mark).map(({ pid }) => pid);
  }

  killAgent(pick: (pids: readonly number[]) => number): void {
    const pids = this.agents();
    if (pids.length === 0) return;
    try {
      process.kill(pick(pids), 'SIGKILL');
      this.agentKills += 1;
    } catch {
      // It has ended by itself.
    }
  }

  async freezeAgent(pid: number, ms: number): Promise<void> {
    this.agentFreezes += 1;
    await standStill(pid, ms);
  }

  /** The file that the tools of one conversation append to. */
  ledger(owner: string, key: string): string {
    return join(this.home.path, 'ledgers', `${owner}-${key}`);
  }

  /** The names of the tools that ran, in order. */
  ran(owner: string, key: string): string[] {
    try {
      const lines = readFileSync(this.ledger(owner, key), 'utf8').split('\n');
      return lines.filter((line) => line !== '').map((line) => line.split(' ')[0] ?? '');
    } catch {
      return [];
    }
  }

  // ── owners ──

  get token(): string {
    return readFileSync(join(this.home.path, 'home', 'server', 'token'), 'utf8').trim();
  }

  async newKey(owner: string, scopes: string = ALL_SCOPES, ...more: string[]): Promise<{ key: string; id: string }> {
    const args = ['keys', 'create', `of ${owner}`, '--scopes', scopes, '--as', owner, ...more];
    const [made] = await this.home.lines(...args);
    this.#keys.set(owner, this.#keys.get(owner) ?? made.key);
    return made;
  }

  /** The first key of an owner. */
  key(owner: string): string {
    const key = this.#keys.get(owner);
    if (key === undefined) throw new Error(`${owner} has no key`);
    return key;
  }

  /** Makes requests of an owner over HTTP. Every answer is checked against the OpenAPI document. */
  caller(owner: string): Caller {
    return new Caller(this.url, { authorization: `Bearer ${this.key(owner)}` });
  }

  /** A command of an owner. It uses the server if one answers at the socket, otherwise the data home. */
  command(owner: string, ...args: string[]): Running {
    return this.home.start(['--as', owner, ...args]);
  }

  // ── the end ──

  /** Stops the server. Returns what is left that must not be. */
  async leftOver(): Promise<string[]> {
    const { code } = await this.stop();
    const violations = code === 0 ? [] : [`the server ended with the code ${code}`];
    await until('agents to end', () => this.agents().length === 0).catch(() => {});
    const orphans = this.agents();
    if (orphans.length > 0) violations.push(`${orphans.length} agents are left: ${orphans.map(commandOf).join('; ')}`);
    const looked = await this.home.run('doctor', '--json');
    const found = parseLines(looked.stdout).filter(({ check, isNote }) => check !== 'agents' && isNote !== true);
    for (const { check, subject, problem } of found) violations.push(`doctor: ${check}: ${subject}: ${problem}`);
    return [...violations, ...bugsIn(this.log)];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.home.remove();
    await endMarked(this.mark);
  }
}

async function standStill(pid: number, ms: number): Promise<void> {
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => {
    try {
      process.kill(pid, name);
    } catch {
      // It has already ended.
    }
  };
  signal('SIGSTOP');
  await pause(ms);
  signal('SIGCONT');
}

function commandOf(pid: number): string {
  try {
    return `${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').slice(0, 200)}`;
  } catch {
    return String(pid);
  }
}
