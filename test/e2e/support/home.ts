import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'vitest';
import type { ScriptedOptions } from '../../../src/agents/scripted/options.ts';
import { compose } from '../../../src/compose.ts';
import { createEngine } from '../../../src/engine/engine.ts';
import type { ConfiguredAgent, EngineSettings } from '../../../src/engine/parts.ts';
import type { OpenOptions, Throughline } from '../../../src/index.ts';
import type { Agent } from '../../../src/ports/agent.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import type { Store } from '../../../src/ports/store.ts';
import { Host } from './host.ts';
import { openAsChosen, reachAsChosen } from './served.ts';

/** Scripted agents by name, each with the options in which it differs from a well-behaved agent. */
export type Agents = Readonly<Record<string, Partial<ScriptedOptions>>>;
/** So many that no turn waits for a slot. The default depends on the machine. */
const MANY_SLOTS = { parallel: 64, perOwner: 64 };

/** The default of these tests: a permission waits until a test calls `engine.answer`. */
const ASKING: Tuning = { permissions: 'ask' };

export type Tuning = Partial<Omit<EngineSettings, 'defaultAgent' | 'restore'>>;

export interface Change {
  readonly agent?: (agent: Agent) => Agent;
  readonly store?: (store: Store) => Store;
  /** Settings of this engine only. The engine that `compose` makes with the same parts keeps its own, and claims only its own turns. */
  readonly settings?: Tuning;
}

/** The `dir` of an agent whose sandboxes all keep their sessions in one folder of the home. */
export const ONE_STORAGE = '../../storage';

/** One data home in a temporary directory, and every process that works in it. */
export class Home {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-e2e-')));
  readonly file = join(this.path, 'throughline.db');
  readonly sandboxes = join(this.path, 'sandboxes');
  readonly #agents: Agents;
  readonly #opened: { close(options: { graceMs: number }): Promise<void> }[] = [];
  readonly #hosts: Host[] = [];
  readonly #bugs: unknown[] = [];

  constructor(agents: Agents = { scripted: {} }) {
    this.#agents = agents;
  }

  /** Throughline in this process. */
  async open(engine: Tuning = {}, more: OpenOptions = {}): Promise<Throughline> {
    const settings = this.#settings();
    const onBug = (error: unknown) => this.#bugs.push(error);
    const tl = await openAsChosen(
      { settings, engine: { ...ASKING, ...engine }, onBug, ...more, home: more.home ?? this.path },
      onBug,
    );
    this.#opened.push(tl);
    return tl;
  }

  /** Options of `open`: these settings, with the agents of this home. */
  with(settings: object): OpenOptions {
    return { settings: { ...this.#settings(), ...settings } } as OpenOptions;
  }

  /** An engine in this process, with changed agents, a changed store or changed settings. */
  async engine(change: Change, engine: Tuning = {}): Promise<Engine> {
    const onBug = (error: unknown) => this.#bugs.push(error);
    const { parts } = await compose({
      ...{ home: this.path, settings: this.#settings(), engine: { ...ASKING, ...engine }, onBug },
    });
    const agents = new Map<string, ConfiguredAgent>();
    for (const [name, one] of parts.agents) agents.set(name, { ...one, agent: change.agent?.(one.agent) ?? one.agent });
    const store = change.store?.(parts.store) ?? parts.store;
    const settings = { ...parts.settings, ...change.settings };
    const embedded = createEngine({ ...parts, agents, store, settings }, 'local');
    const made = await reachAsChosen(this.path, embedded, onBug);
    this.#opened.push(made);
    return made;
  }

  /** Throughline in another process, as in a server. */
  async host(engine: Tuning = {}): Promise<Host> {
    const host = Host.start({ home: this.path, settings: this.#settings(), engine: { ...ASKING, ...engine } });
    this.#hosts.push(host);
    await host.calls.ready();
    return host;
  }

  /** The rows of a query, read from the database file and not through our store. */
  query<T>(sql: string, ...values: (string | number)[]): T[] {
    const db = new DatabaseSync(this.file, { readOnly: true, timeout: 60_000 });
    try {
      return db.prepare(sql).all(...values) as T[];
    } finally {
      db.close();
    }
  }

  /** When the lease of its only conversation ends. */
  leaseEnd(): number {
    const [row] = this.query<{ ready_at: number | null }>('SELECT ready_at FROM leases');
    return row?.ready_at ?? expect.unreachable('nobody holds the conversation');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#hosts.map((host) => host.kill()));
    await Promise.all(this.#opened.map((tl) => tl.close({ graceMs: 0 })));
    // Agents of a host that was killed may still write.
    rmSync(this.path, { recursive: true, force: true, maxRetries: 20 });
    expect(this.#bugs, 'faults of the program itself').toEqual([]);
  }

  #settings() {
    const agents = Object.entries(this.#agents).map(([name, options]) => [name, { adapter: 'scripted', options }]);
    return { agents: Object.fromEntries(agents), turns: MANY_SLOTS };
  }
}
