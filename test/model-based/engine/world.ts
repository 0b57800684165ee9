import { ThroughlineError } from '../../../src/core/errors.ts';
import type { ProcessIdentity } from '../../../src/core/process.ts';
import { DEFAULT_RESTORE } from '../../../src/core/restore/restore-settings.ts';
import { hasEnded } from '../../../src/core/turn/turn.ts';
import { createEngine } from '../../../src/engine/engine.ts';
import { DEFAULT_ENGINE_SETTINGS, type EngineParts } from '../../../src/engine/parts.ts';
import { ProcessHealth } from '../../../src/host/health.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import type { Store } from '../../../src/ports/store.ts';
import { AgentDouble, AgentStorage, FOREIGN } from './agent-double.ts';
import type { Command, Setup } from './commands.ts';
import { Gate, storeBehind } from './gate.ts';
import { Machine } from './machine.ts';
import { PROFILES } from './profiles.ts';
import { checkPromises } from './promises.ts';
import { type Script, Witness } from './witness.ts';

const LEASE_MS = 60_000;
/** Short waits in real time. Leases use the injected clock. */
const SETTINGS = {
  ...DEFAULT_ENGINE_SETTINGS,
  permissions: 'ask',
  claims: 'all',
  leaseMs: LEASE_MS,
  maxWarm: 1,
  retryMs: 0,
  lock: { firstMs: 1, longestMs: 2, totalMs: 6 },
  flushMs: 0,
  storageMs: 100,
  defaultAgent: 'a',
  restore: DEFAULT_RESTORE,
} as const;

interface Running {
  readonly engine: Engine;
  readonly gate: Gate;
  readonly process: ProcessIdentity;
  closed: boolean;
}

/** A few engines on one store, their agents, and everything that interferes with them. */
export class World {
  readonly owner: string;
  readonly store: Store;
  readonly machine: Machine;
  readonly witness: Witness;
  readonly storages: Record<'a' | 'b', AgentStorage>;
  readonly setup: Setup;
  /** Sessions that somebody else has changed. If the agent's storage cannot be read, nothing shows that. */
  readonly touched = new Set<string>();
  readonly #note: (line: string) => void;
  readonly #engines: Running[] = [];
  readonly #conversations: string[] = [];
  readonly #words: { word: string; conversation: string; script: Script }[] = [];
  #retries = 0;
  #notified = 0;
  #warming = 0;

  constructor(store: Store, name: string, time: number, setup: Setup, note: (line: string) => void) {
    this.owner = name;
    this.storages = { a: new AgentStorage(`${name}-a`), b: new AgentStorage(`${name}-b`) };
    this.store = store;
    this.machine = new Machine(time);
    this.witness = new Witness(store, this.machine, name);
    this.setup = setup;
    this.#note = note;
  }

  get conversations(): readonly string[] {
    return this.#conversations;
  }

  async start(): Promise<void> {
    const { engine } = this.#startEngine();
    for (let i = 0; i < 2; i += 1) this.#conversations.push((await engine.ensure({})).id);
  }

  async run(command: Command): Promise<void> {
    this.#healthy();
    this.#watch(this.#do(command), command.do);
    if (command.wait === 'stillness') await this.machine.stillness();
    else await this.machine.ticks(command.wait);
  }

  /** Lets paused engines continue, starts one more engine that ends all turns, and checks the promises. */
  async finish(): Promise<void> {
    for (const { gate } of this.#engines) gate.dieAfter(Number.POSITIVE_INFINITY);
    for (const { gate } of this.#engines) gate.wake();
    await this.machine.stillness();
    this.#startEngine();
    for (const storage of Object.values(this.storages))
      Object.assign(storage, { locked: 0, hollow: 'no', stolen: null });
    for (let rounds = 0; ; rounds += 1) {
      const open = await this.#openTurns();
      if (open.length === 0) break;
      if (rounds > 40)
        throw new Error(`these turns do not end: ${open.map((turn) => `${turn.n} ${turn.state}`).join(', ')}`);
      this.machine.time += LEASE_MS + 1;
      await this.#notify();
      for (const turn of open)
        if (this.#hangs(turn.prompt)) this.#watch(this.#healthy().engine.cancel(turn.id), 'cancel');
      for (const permission of await this.store.permissions(this.owner, { open: true })) {
        this.#watch(this.#healthy().engine.answer(permission.id, 'no'), 'answer');
      }
      await this.machine.stillness();
    }
    await this.#clean();
    for (const fault of this.witness.faults) throw new Error(fault);
    await checkPromises(this);
  }

  /** Closes all engines, so that no timer and no listener is left. */
  async #clean(): Promise<void> {
    await Promise.all(
      this.#engines.map(async ({ engine, gate }) => {
        if (!gate.open) gate.bury();
        await engine.close({ graceMs: 0 }).catch(() => {});
        gate.bury();
      }),
    );
  }

  async dispose(): Promise<void> {
    for (const { gate } of this.#engines) gate.bury();
    await Promise.all(this.#engines.map(({ engine }) => engine.close({ graceMs: 0 }).catch(() => {})));
  }

  async #do(command: Command): Promise<unknown> {
    const { engine } = this.#healthy();
    switch (command.do) {
      case 'submit':
        return this.#submit(engine, command);
      case 'submit again': {
        const said = pick(this.#words, command.turn);
        if (said)
          return engine.submit(said.conversation, this.witness.prompt(said.word, said.script), {
            requestId: said.word,
          });
        return;
      }
      case 'cancel':
      case 'retry': {
        const said = pick(this.#words, command.turn);
        const turn = said && (await this.store.findRequest(this.owner, said.word));
        if (!turn) return;
        return command.do === 'cancel' ? engine.cancel(turn.id) : this.#retry(engine, turn.id, said.word);
      }
      case 'answer':
        for (const { id } of await this.store.permissions(this.owner, { open: true })) {
          await engine.answer(id, command.yes ? 'yes' : 'no');
        }
        return;
      case 'fork': {
        const source = pick(this.#conversations, command.conversation) as string;
        if (this.#conversations.length < 4) this.#conversations.push((await engine.fork(source)).id);
        return;
      }
      case 'warm':
        this.#warming += 1;
        return engine.warm(pick(this.#conversations, command.conversation) as string).finally(() => {
          this.#warming -= 1;
        });
      case 'let leases run out':
        this.machine.time += LEASE_MS + 1;
        return this.#notify();
      case 'lock':
        for (const storage of Object.values(this.storages)) storage.locked = command.times;
        return;
      case 'hollow':
        for (const storage of Object.values(this.storages)) storage.hollow = command.how as 'openly' | 'secretly';
        return;
      case 'foreign use':
      case 'lose a session':
      case 'same id':
        return this.#meddle(command);
      default:
        return this.#strike(command);
    }
  }

  async #submit(engine: Engine, command: Extract<Command, { do: 'submit' }>): Promise<unknown> {
    const conversation = pick(this.#conversations, command.conversation) as string;
    const word = `${this.owner}-word-${this.#words.length + 1}.`;
    this.#words.push({ word, conversation, script: command.script });
    this.witness.requests.set(word, [word]);
    const sessions = await this.store.sessions(this.owner, conversation);
    const session = command.session === null ? undefined : pick(sessions, command.session)?.id;
    return engine.submit(conversation, this.witness.prompt(word, command.script), {
      requestId: word,
      restore: command.restore,
      ...(command.agent === null ? {} : { agent: command.agent }),
      ...(session === undefined ? {} : { session }),
    });
  }

  #retry(engine: Engine, turn: string, word: string): Promise<unknown> {
    this.#retries += 1;
    const requestId = `${word} again ${this.#retries}`;
    this.witness.requests.get(word)?.push(requestId);
    return engine.retry(turn, { requestId });
  }

  /** Pauses, continues, kills or closes an engine. */
  #strike(command: Extract<Command, { engine: number }>): void {
    const alive = this.#engines.filter((one) => !one.gate.dead && !one.closed);
    const struck = pick(alive, command.engine);
    if (struck === undefined) return;
    if (command.do === 'pause') struck.gate.pause();
    if (command.do === 'wake') struck.gate.wake();
    if (command.do === 'crash') struck.gate.dieAfter(command.passes);
    if (command.do === 'close') {
      struck.closed = true;
      struck.gate.wake();
      this.#watch(struck.engine.close({ graceMs: 0 }), 'close');
    }
  }

  /** Changes a session from outside. Only between turns: during a turn nobody could tell it from what the turn did. */
  async #meddle(command: Extract<Command, { session: number | null }>): Promise<void> {
    if (command.do === 'submit') return;
    const rows = (await Promise.all(this.#conversations.map((id) => this.store.sessions(this.owner, id)))).flat();
    const row = pick(rows, command.session);
    if (row === undefined) return;
    const storage = this.storages[row.agent as 'a' | 'b'];
    const entries = storage.sessions.get(row.id);
    if (command.do === 'same id') {
      // Not if that session was changed from outside: with its id, nobody could tell the new one from it.
      if (!this.touched.has(row.id)) storage.stolen = row.id;
      return;
    }
    const turns = await this.store.turns(this.owner, row.conversation, { after: 0, limit: 100 });
    if (entries === undefined || this.#warming > 0 || turns.some((turn) => !hasEnded(turn.state))) return;
    this.touched.add(row.id);
    if (storage.stolen === row.id) storage.stolen = null;
    if (command.do === 'foreign use') entries.push(FOREIGN);
    else storage.sessions.delete(row.id);
  }

  #startEngine(): Running {
    const { machine, witness, setup } = this;
    const process = machine.spawn();
    const gate = new Gate(
      () => {
        machine.activity += 1;
      },
      () => machine.kill(process),
    );
    const agents = new Map(
      (['a', 'b'] as const).map((name) => {
        const around = { machine, storage: this.storages[name], gate, witness };
        return [name as string, { agent: new AgentDouble(name, PROFILES[setup[name]], around), adapter: 'double' }];
      }),
    );
    const nothing = () => Promise.reject(new Error('agents of this world have no files and programs'));
    const uses = { folder: nothing, realPath: nothing, find: nothing, spawn: nothing };
    const sandbox = { host: 'here', work: '', state: '', home: '', env: {}, ...uses };
    const parts: EngineParts = {
      store: storeBehind(gate, this.store),
      agents,
      sandboxes: {
        place: this.owner,
        home: '/home',
        open: async (id) => ({ id, ...sandbox }),
        probe: async () => ({ id: 'probe', ...sandbox, [Symbol.asyncDispose]: async () => {} }),
        ...machine.sandboxedFor(gate),
        changes: async () => ({ head: null, files: [], more: 0 }),
        files: async () => ({ paths: [], more: false }),
        list: async () => ({ root: '', ids: [] }),
        find: async () => null,
        remove: async () => {},
        checkDirectory: async (path) => ({ path, real: path, project: path }),
      },
      processes: machine.processesFor(process),
      clock: machine.clock,
      settings: SETTINGS,
      health: new ProcessHealth(),
      onTrouble: () => {},
      onBug: (error, where) => {
        if (!gate.dead) witness.fault(new Error(`a bug while ${where}`, { cause: error }));
      },
    };
    const running = { engine: createEngine(parts, this.owner), gate, process, closed: false };
    this.#engines.push(running);
    return running;
  }

  /** An engine that answers. Starts one if there is none. */
  #healthy(): Running {
    return this.#engines.findLast((one) => one.gate.open && !one.closed) ?? this.#startEngine();
  }

  /** Does not wait for the call, because the engine may die before it answers. An error must be a `ThroughlineError`. */
  #watch(call: Promise<unknown>, what: string): void {
    call.then(
      () => this.#note(`${what}: done`),
      (error: unknown) => {
        this.#note(`${what}: ${error instanceof Error ? error.message : String(error)}`);
        if (!(error instanceof ThroughlineError) || error.code === 'internal') this.witness.fault(error);
      },
    );
  }

  /** Makes the engines look for work. Their own polling uses real time, which would take too long here. */
  async #notify(): Promise<void> {
    this.#notified += 1;
    for (const id of this.#conversations)
      await this.store.setTitle(this.owner, id, `title ${this.#notified}`, 'caller');
  }

  async #openTurns() {
    const turns = await Promise.all(
      this.#conversations.map((id) => this.store.turns(this.owner, id, { after: 0, limit: 100 })),
    );
    return turns.flat().filter((turn) => !hasEnded(turn.state));
  }

  #hangs(prompt: unknown): boolean {
    return JSON.stringify(prompt).includes('(hang)');
  }
}

function pick<T>(all: readonly T[], which: number | null): T | undefined {
  return which === null ? undefined : all[which % Math.max(1, all.length)];
}
