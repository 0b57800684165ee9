import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { noSuchAgent, ThroughlineError } from './core/errors.ts';
import { DEFAULT_RESTORE } from './core/restore-settings.ts';
import { type AdapterName, type AgentSettings, parseSettings, type Settings } from './core/settings.ts';
import { createEngine } from './engine/engine.ts';
import {
  type ConfiguredAgent,
  DEFAULT_ENGINE_SETTINGS,
  type EngineParts,
  type EngineSettings,
  withinTimers,
} from './engine/parts.ts';
import { observed } from './engine/reading/observed-store.ts';
import { systemClock } from './host/clock.ts';
import { dataHome } from './host/data-home.ts';
import { makeDirectories } from './host/make-directories.ts';
import { placeOf } from './host/place.ts';
import { bootId, endMarked, identify, systemProcesses } from './host/processes.ts';
import { reportBug } from './host/report-bug.ts';
import { reportTrouble, seldom } from './host/report-trouble.ts';
import { conversationLeases, freeDead } from './leases/lease-keeper.ts';
import type { Agent, NativeSession } from './ports/agent.ts';
import type { Doctor } from './ports/doctor.ts';
import type { Engine } from './ports/engine.ts';
import type { Store } from './ports/store.ts';
import type { Tasks } from './ports/tasks.ts';
import type { Telemetry } from './ports/telemetry.ts';
import { directorySandboxes } from './sandboxes/directory/directory-sandboxes.ts';

/** The only file that names concrete parts: settings in, a running engine out. */

export { dataHome };

export interface ComposeOptions {
  /** Where the data lives; left out: $THROUGHLINE_HOME, else the XDG data directory. */
  readonly home?: string;
  /** A settings file; left out: $THROUGHLINE_CONFIG, else throughline.config.json here, else in the data home. */
  readonly config?: string;
  /** Settings as a value, instead of any file. */
  readonly settings?: unknown;
  readonly owner?: string;
  /** What this process wants otherwise than the defaults. */
  readonly engine?: Partial<Omit<EngineSettings, 'defaultAgent' | 'restore'>>;
  /** Agents beside those of the settings, which win where both have a name. None of them is used unasked. */
  readonly agents?: Readonly<Record<string, AgentSettings>>;
  readonly onBug?: EngineParts['onBug'];
  /** Told that the storage takes nothing just now, and that what was accepted waits for it; left out: stderr is. */
  readonly onTrouble?: EngineParts['onTrouble'];
  /** Told of what is done here. */
  readonly telemetry?: Telemetry;
}

export interface Composed {
  readonly engine: Engine;
  readonly parts: EngineParts;
  readonly home: string;
  /** Agents at work on tasks; made when first asked for. Closed before the engine. */
  readonly tasks: () => Promise<Tasks>;
}

/** Where this composition lives: paths of the settings are relative to `base`. */
interface Whereabouts {
  readonly base: string;
  readonly home: string;
}

type MakeAgent = (name: string, settings: AgentSettings, where: Whereabouts) => Promise<Agent>;

/** Every adapter there is, loaded when an agent uses it. */
const MAKE_AGENT: Record<AdapterName, MakeAgent> = {
  scripted: async (name, { options, env }) => {
    const { scriptedAgent } = await import('./agents/scripted/adapter.ts');
    return scriptedAgent({ name, options, env });
  },
  'claude-sdk': async (name, settings, where) => {
    const { claudeSdkAgent } = await import('./agents/claude/sdk/adapter.ts');
    return claudeSdkAgent({ name, ...programSettings(settings, where), installed: installedClaude(where.home) });
  },
  'claude-cli': async (name, settings, where) => {
    const { claudeCliAgent } = await import('./agents/claude/cli/adapter.ts');
    return claudeCliAgent({ name, ...programSettings(settings, where), installed: installedClaude(where.home) });
  },
  acp: async (name, settings, where) => {
    const { acpAgent } = await import('./agents/acp/adapter.ts');
    return acpAgent({ name, ...programSettings(settings, where), ...acpFolders(where.home) });
  },
};

/** Where agents that speak the Agent Client Protocol are installed, and where what was learnt of them is kept. */
function acpFolders(home: string) {
  return { installed: join(home, 'agents', 'acp'), memory: join(home, 'agents', 'learnt') };
}

/** The folder filled by `throughline agents install claude`. */
export function installedClaude(home: string): string {
  return join(home, 'agents', 'claude');
}

/** Paths are relative to the settings' file; a program's plain name is looked for on PATH. */
function programSettings(given: AgentSettings, { base }: Whereabouts) {
  const { adapter: _, package: folder, command: [program = '', ...args] = [], ...settings } = given;
  return {
    ...settings,
    ...(folder === undefined ? {} : { package: resolve(base, folder) }),
    ...(program === '' ? {} : { command: [/[/\\]/.test(program) ? resolve(base, program) : program, ...args] }),
  };
}

/** The agents that a person has set, by name; their paths are whole. None: nothing is set. */
export function agentsInSettings(options: Pick<ComposeOptions, 'home' | 'config'>): Record<string, AgentSettings> {
  const home = resolve(options.home ?? dataHome());
  const { settings, base } = readSettings(options, home);
  const whole = (given: AgentSettings) => ({ adapter: given.adapter, ...programSettings(given, { base, home }) });
  return Object.fromEntries(Object.entries(settings.agents).map(([name, given]) => [name, whole(given)]));
}

/** What a person has who has set nothing: Claude and whatever else is found, and an agent that needs no model. */
async function agentsWithoutSettings(home: string): Promise<Record<string, AgentSettings>> {
  const { availableClaude } = await import('./agents/claude/available.ts');
  const adapter = availableClaude(installedClaude(home), process.env.PATH ?? '');
  const { availableAgents } = await import('./agents/acp/known/find.ts');
  const plain = { env: {}, options: {} };
  const others = availableAgents(acpFolders(home).installed, process.env.PATH ?? '');
  return {
    ...(adapter && { claude: { adapter, ...plain } }),
    ...Object.fromEntries(others.map((name) => [name, { adapter: 'acp', ...plain } as const])),
    scripted: { adapter: 'scripted', ...plain },
  };
}

/** Loads the agent when it is first used: one that nobody asked for must not slow down the others. */
function whenUsed(name: string, make: () => Promise<Agent>): Agent {
  let made: Promise<Agent> | null = null;
  const agent = () => {
    made ??= make();
    return made;
  };
  return {
    name,
    traits: async () => (await agent()).traits(),
    open: async (request) => (await agent()).open(request),
    position: async (...args) => (await agent()).position(...args),
    storage: async (sandbox) => (await (await agent()).storage?.(sandbox)) ?? name,
    tail: async (...args) => (await agent()).tail(...args),
    where: async () => (await (await agent()).where?.()) ?? null,
    doubt: async () => (await (await agent()).doubt?.()) ?? null,
    list: async (...args) => (await (await agent()).list?.(...args)) ?? null,
    login: async (signal) => (await (await agent()).login?.(signal)) ?? null,
  };
}

export async function compose(options: ComposeOptions = {}): Promise<Composed> {
  const home = resolve(options.home ?? dataHome());
  makeHome(home);
  const { settings, base } = readSettings(options, home);
  const { agents, defaultAgent } = await composeAgents(settings, { base, home }, options.agents);
  const store = await openStore(settings.store, base, home);
  const parts: EngineParts = {
    store: options.telemetry === undefined ? store : observed(store, options.telemetry),
    agents,
    sandboxes: directorySandboxes({
      root: sandboxRoot(settings, base, home),
      place: placeOf(home),
      identify,
      endMarked,
    }),
    processes: systemProcesses,
    clock: systemClock,
    settings: {
      ...DEFAULT_ENGINE_SETTINGS,
      lock: { ...DEFAULT_ENGINE_SETTINGS.lock, ...settings.lock },
      ...withinTimers(options.engine ?? {}),
      defaultAgent,
      restore: { ...DEFAULT_RESTORE, ...settings.restore },
    },
    onBug: options.onBug ?? reportBug,
    onTrouble: seldom(options.onTrouble ?? reportTrouble),
  };
  const engine = createEngine(parts, options.owner ?? 'local');
  let tasks: Promise<Tasks> | null = null;
  const makeTasks = () => {
    tasks ??= composeTasks(engine, parts, settings.tasks);
    return tasks;
  };
  return { engine, parts, home, tasks: makeTasks };
}

const LIST_MS = 60_000;

/** The sessions that an agent itself has of a directory. Throws `agent_unavailable`, or `refused` when it cannot list them. */
export async function sessionsOfAgent(
  options: Pick<ComposeOptions, 'home' | 'config'>,
  name: string,
  cwd: string,
): Promise<NativeSession[]> {
  const home = resolve(options.home ?? dataHome());
  const { settings, base } = readSettings(options, home);
  const { agents } = await composeAgents(settings, { base, home });
  const found = agents.get(name);
  if (found === undefined) throw noSuchAgent(name, agents.keys());
  const sessions = await found.agent.list?.(cwd, AbortSignal.timeout(LIST_MS));
  if (sessions) return sessions;
  throw new ThroughlineError('refused', `The agent ${name} cannot list its sessions.`, {
    hint: 'One whose id you know can be taken all the same: send --session ID.',
  });
}

async function composeAgents(settings: Settings, where: Whereabouts, more: ComposeOptions['agents'] = {}) {
  const isSet = Object.keys(settings.agents).length > 0;
  const agents = new Map<string, ConfiguredAgent>();
  for (const [name, value] of Object.entries(isSet ? settings.agents : await agentsWithoutSettings(where.home))) {
    const make = () => MAKE_AGENT[value.adapter](name, value, where);
    // What a person has set is checked at once; what nobody has set cannot be wrong.
    agents.set(name, { agent: isSet ? await make() : whenUsed(name, make), adapter: value.adapter });
  }
  const [firstAgent = null] = agents.keys();
  const defaultAgent = settings.defaultAgent ?? (agents.size === 1 || !isSet ? firstAgent : null);
  for (const [name, value] of Object.entries(more)) {
    const make = () => MAKE_AGENT[value.adapter](name, value, where);
    if (!agents.has(name)) agents.set(name, { agent: whenUsed(name, make), adapter: value.adapter });
  }
  return { agents, defaultAgent };
}

/** Without an engine: one that opens clears up after dead workers, and looking is to change nothing. */
export async function composeDoctor(options: Pick<ComposeOptions, 'home' | 'config'>): Promise<Doctor> {
  const home = resolve(options.home ?? dataHome());
  makeHome(home);
  const { settings, base } = readSettings(options, home);
  const [store, { examine }] = await Promise.all([openStore(settings.store, base, home), import('./doctor/doctor.ts')]);
  const own = {
    store,
    processes: systemProcesses,
    place: placeOf(home),
    sandboxes: {
      root: sandboxRoot(settings, base, home),
      isOurs: settings.sandbox.root === undefined,
      aside: join(home, 'aside'),
    },
    reap: () => freeDead(conversationLeases(store), systemProcesses),
  };
  const agents = async () => {
    const [{ listAgents }, known] = await Promise.all([
      import('./engine/intake/agents.ts'),
      composeAgents(settings, { base, home }),
    ]);
    return listAgents({ agents: known.agents, settings: known }, { login: true });
  };
  return { examine: () => examine(own), agents, close: () => store.close() };
}

async function composeTasks(engine: Engine, parts: EngineParts, { parallel }: Settings['tasks']): Promise<Tasks> {
  const [{ createTasks }, { DEFAULT_PARALLEL }] = await Promise.all([
    import('./tasks/tasks.ts'),
    import('./tasks/parts.ts'),
  ]);
  return createTasks({
    ...parts,
    engine,
    settings: { ...parts.settings, parallel: parallel ?? DEFAULT_PARALLEL },
  });
}

function makeHome(home: string): void {
  try {
    makeDirectories(home);
  } catch (cause) {
    throw new ThroughlineError('storage_readonly', `The data home ${home} cannot be made.`, {
      hint: 'Set THROUGHLINE_HOME to a directory that you may write.',
      cause,
    });
  }
}

/** The settings and the directory that paths in them are relative to. */
function readSettings(options: ComposeOptions, home: string): { settings: Settings; base: string } {
  if (options.settings !== undefined) return { settings: parseSettings(options.settings), base: process.cwd() };
  const named = options.config ?? process.env.THROUGHLINE_CONFIG;
  const candidates = named ? [named] : ['throughline.config.json', join(home, 'throughline.config.json')];
  for (const candidate of candidates) {
    const file = resolve(candidate);
    const text = readIfThere(file, Boolean(named));
    if (text !== null) return { settings: parseSettings(parseJson(text, file)), base: resolve(file, '..') };
  }
  return { settings: parseSettings({}), base: home };
}

function readIfThere(file: string, required: boolean): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    if (!required && (cause as NodeJS.ErrnoException).code === 'ENOENT') return null;
    const { code } = cause as NodeJS.ErrnoException;
    throw new ThroughlineError('invalid', `The settings file ${file} cannot be read (${code}).`, {
      hint: 'Name one that is there, by --config or $THROUGHLINE_CONFIG, or none.',
      cause,
    });
  }
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ThroughlineError('invalid', `The settings file ${file} is not JSON: ${(cause as Error).message}.`, {
      cause,
    });
  }
}

async function openStore(store: string | undefined, base: string, home: string): Promise<Store> {
  const address = store ?? `sqlite:${join(home, 'throughline.db')}`;
  const [, kind, path] = /^([a-z]+):(.+)$/.exec(address) ?? [];
  if (kind !== 'sqlite' || path === undefined) {
    throw new ThroughlineError('invalid', `The store "${address}" is not known.`, { hint: 'Write "sqlite:PATH".' });
  }
  const { openSqliteStore } = await import('./stores/sqlite/store.ts');
  return openSqliteStore({ file: resolve(base, path), clock: systemClock, boot: bootId() });
}

function sandboxRoot(settings: Settings, base: string, home: string): string {
  return settings.sandbox.root === undefined ? join(home, 'sandboxes') : resolve(base, settings.sandbox.root);
}
