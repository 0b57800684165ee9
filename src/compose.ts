import { join, resolve } from 'node:path';
import type { AcpSettings } from './agents/acp/adapter.ts';
import { noSuchAgent, SCRIPTED, ThroughlineError, whileWaiting } from './core/errors.ts';
import { shown } from './core/input/arguments.ts';
import { type AdapterName, type AgentSettings, parseSettings, type Settings } from './core/input/settings.ts';
import { NO_BUDGET } from './core/limits/budget.ts';
import { DEFAULT_TIME_LIMITS } from './core/limits/time-limits.ts';
import { DEFAULT_RESTORE } from './core/restore/restore-settings.ts';
import { hasEnded, isPermissionMode, type PermissionMode } from './core/turn/turn.ts';
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
import { createHome, dataHome } from './host/data-home.ts';
import { placeOf } from './host/place.ts';
import { bootId, processesAt } from './host/processes.ts';
import { reportBug, reportTrouble, seldom } from './host/report.ts';
import { readSettings } from './host/settings-file.ts';
import { conversationLeases, freeDead } from './leases/lease-keeper.ts';
import type { Agent, NativeSession } from './ports/agent.ts';
import type { Doctor } from './ports/doctor.ts';
import type { Engine } from './ports/engine.ts';
import type { Sandboxes } from './ports/sandbox.ts';
import type { Store } from './ports/store.ts';
import type { Tasks } from './ports/tasks.ts';
import type { Telemetry } from './ports/telemetry.ts';
import { directorySandboxes } from './sandboxes/directory/directory-sandboxes.ts';
import { spawnInGroup } from './sandboxes/directory/spawn.ts';

/** The only file that names concrete parts: settings in, a running engine out. */

export interface ComposeOptions {
  /** Where the data is kept; left out: $THROUGHLINE_HOME, else the XDG data directory. */
  readonly home?: string;
  /** A settings file; left out: $THROUGHLINE_CONFIG, else throughline.config.json here, else in the data home. */
  readonly config?: string;
  /** Settings as a value, instead of any file. */
  readonly settings?: unknown;
  readonly owner?: string;
  /** Where this process differs from the defaults. */
  readonly engine?: Partial<Omit<EngineSettings, 'defaultAgent' | 'restore'>>;
  /** More agents. Those of the settings win where both have a name. None of these is the default agent. */
  readonly agents?: Readonly<Record<string, AgentSettings>>;
  readonly onBug?: EngineParts['onBug'];
  /** Called while the storage cannot be written and accepted turns wait for it; left out: a message on stderr. */
  readonly onTrouble?: EngineParts['onTrouble'];
  readonly telemetry?: Telemetry;
  /** What happens when an agent asks for permission and the turn does not say it; left out: as the settings say. */
  readonly permissions?: PermissionMode;
}

export interface Composed {
  readonly engine: Engine;
  readonly parts: EngineParts;
  readonly home: string;
  /** Created when first asked for. Close it before the engine. */
  readonly tasks: () => Promise<Tasks>;
}

/** `usual`: what happens to permission questions when neither options nor settings say it. */
export async function compose(options: ComposeOptions = {}, usual: PermissionMode = 'deny'): Promise<Composed> {
  checkPermissions(options);
  const setup = createSetup(options);
  const { settings, home } = setup;
  const known = await composeAgents(setup, options.agents);
  const store = await openStore(setup);
  const processes = processesAt(placeOf(home));
  const parts: EngineParts = {
    store: options.telemetry === undefined ? store : observed(store, options.telemetry),
    agents: known.agents,
    sandboxes: sandboxesOf(setup),
    processes,
    clock: systemClock,
    settings: {
      ...DEFAULT_ENGINE_SETTINGS,
      lock: { ...DEFAULT_ENGINE_SETTINGS.lock, ...settings.lock },
      ...limitsOf(settings),
      permissions: options.permissions ?? settings.permissions.mode ?? usual,
      ...withinTimers({ ...permissionWait(settings), ...options.engine }),
      get defaultAgent() {
        return known.defaultAgent;
      },
      restore: { ...DEFAULT_RESTORE, ...settings.restore },
    },
    onBug: options.onBug ?? reportBug,
    onTrouble: seldom((error) => (options.onTrouble ?? reportTrouble)(whileWaiting(error)), systemClock),
  };
  const engine = createEngine(parts, options.owner ?? 'local');
  let tasks: Promise<Tasks> | null = null;
  const makeTasks = () => {
    tasks ??= composeTasks(engine, parts, settings);
    return tasks;
  };
  return { engine, parts, home, tasks: makeTasks };
}

function checkPermissions({ permissions }: ComposeOptions): void {
  if (permissions === undefined || isPermissionMode(permissions)) return;
  throw new ThroughlineError('invalid', `permissions must be "ask" or "deny", not ${shown(permissions)}.`);
}

function limitsOf({ limits }: Settings): Pick<EngineSettings, 'times' | 'spending'> {
  const { conversationPerDay = NO_BUDGET, ownerPerDay = NO_BUDGET, owners = {}, ...times } = limits;
  return {
    times: { ...DEFAULT_TIME_LIMITS, ...times },
    spending: { conversationPerDay, ownerPerDay, owners: new Map(Object.entries(owners)) },
  };
}

function permissionWait({ permissions: { waitSeconds } }: Settings): Partial<EngineSettings> {
  return waitSeconds === undefined ? {} : { permissionMs: waitSeconds * 1000 };
}

/** The data home, its settings, and the directory `base` that paths in the settings are relative to. */
interface Setup {
  readonly home: string;
  readonly settings: Settings;
  readonly base: string;
}

type SetupOptions = Pick<ComposeOptions, 'home' | 'config' | 'settings'>;

function createSetup(options: SetupOptions): Setup {
  createHome(resolve(options.home ?? dataHome()));
  return readSetup(options);
}

function readSetup({ home: given, config, settings }: SetupOptions): Setup {
  const home = resolve(given ?? dataHome());
  if (settings !== undefined) return { home, settings: parseSettings(settings), base: process.cwd() };
  return { home, ...readSettings(home, config) };
}

/** The agents of the settings, or those that are found on this machine, and then `more`. */
async function composeAgents(setup: Setup, more: ComposeOptions['agents'] = {}): Promise<KnownAgents> {
  const { settings, home } = setup;
  const isSet = Object.keys(settings.agents).length > 0;
  const whenNeeded = (name: string, value: AgentSettings) =>
    configured(
      value,
      whenUsed(name, () => MAKE_AGENT[value.adapter](name, value, setup)),
    );
  const agents = isSet ? new Map<string, ConfiguredAgent>() : new FoundAgents(await findsAgents(home), whenNeeded);
  // What a person has set is checked at once; what nobody has set cannot be wrong.
  for (const [name, value] of Object.entries(settings.agents)) {
    agents.set(name, configured(value, await MAKE_AGENT[value.adapter](name, value, setup)));
  }
  const [onlyAgent = null] = agents.size === 1 ? agents.keys() : [];
  for (const [name, value] of Object.entries(more)) {
    if (!agents.has(name)) agents.set(name, whenNeeded(name, value));
  }
  return {
    agents,
    get defaultAgent() {
      return settings.defaultAgent ?? (agents instanceof FoundAgents ? agents.first : onlyAgent);
    },
  };
}

interface KnownAgents {
  readonly agents: ReadonlyMap<string, ConfiguredAgent>;
  readonly defaultAgent: string | null;
}

const LOOK_AGAIN_MS = 1_000;

/** The agents of a person who has set none: those that are found. Whoever asks later also gets what was installed meanwhile. */
class FoundAgents extends Map<string, ConfiguredAgent> {
  readonly #find: () => Record<string, AgentSettings>;
  readonly #make: (name: string, settings: AgentSettings) => ConfiguredAgent;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** The one that was found first and has a model; null: none was. It does not change while we run. */
  #first: string | null = null;

  constructor(
    find: () => Record<string, AgentSettings>,
    make: (name: string, found: AgentSettings) => ConfiguredAgent,
  ) {
    super();
    this.#find = find;
    this.#make = make;
  }

  get first(): string | null {
    this.#look();
    return this.#first;
  }

  override get size(): number {
    this.#look();
    return super.size;
  }

  override has(name: string): boolean {
    this.#look();
    return super.has(name);
  }

  override get(name: string): ConfiguredAgent | undefined {
    this.#look();
    return super.get(name);
  }

  override keys(): MapIterator<string> {
    this.#look();
    return super.keys();
  }

  override values(): MapIterator<ConfiguredAgent> {
    this.#look();
    return super.values();
  }

  override entries(): MapIterator<[string, ConfiguredAgent]> {
    this.#look();
    return super.entries();
  }

  override [Symbol.iterator](): MapIterator<[string, ConfiguredAgent]> {
    return this.entries();
  }

  override forEach(each: (agent: ConfiguredAgent, name: string, all: Map<string, ConfiguredAgent>) => void): void {
    for (const [name, agent] of this) each(agent, name, this);
  }

  #look(): void {
    const now = systemClock.monotonic();
    if (now - this.#lookedAt < LOOK_AGAIN_MS) return;
    this.#lookedAt = now;
    for (const [name, found] of Object.entries(this.#find())) {
      if (super.has(name)) continue;
      super.set(name, this.#make(name, found));
      if (name !== SCRIPTED) this.#first ??= name;
    }
  }
}

function configured({ adapter, limits }: AgentSettings, agent: Agent): ConfiguredAgent {
  return limits === undefined ? { agent, adapter } : { agent, adapter, times: limits };
}

/** Every adapter there is, loaded when an agent uses it. */
const MAKE_AGENT: Record<AdapterName, (name: string, settings: AgentSettings, setup: Setup) => Promise<Agent>> = {
  scripted: async (name, { options, env }) => {
    const { scriptedAgent } = await import('./agents/scripted/adapter.ts');
    return scriptedAgent({ name, options, env });
  },
  'claude-sdk': async (name, settings, setup) => {
    const { claudeSdkAgent } = await import('./agents/claude/sdk/adapter.ts');
    return claudeSdkAgent({ name, ...programSettings(settings, setup), ...claudeParts(setup) });
  },
  'claude-cli': async (name, settings, setup) => {
    const { claudeCliAgent } = await import('./agents/claude/cli/adapter.ts');
    return claudeCliAgent({ name, ...programSettings(settings, setup), ...claudeParts(setup) });
  },
  acp: async (name, settings, setup) => {
    const { acpAgent } = await import('./agents/acp/adapter.ts');
    const start: AcpSettings['start'] = (command, options) =>
      spawnInGroup(command, { ...options, ...processesAt(placeOf(setup.home)) });
    return acpAgent({ name, ...programSettings(settings, setup), ...acpFolders(setup.home), start });
  },
};

/** Paths are relative to the settings' file; a program's plain name is looked for on PATH. */
function programSettings(given: AgentSettings, { base }: Setup) {
  const { adapter: _, limits, package: folder, command: [program = '', ...args] = [], ...settings } = given;
  return {
    ...settings,
    ...(folder === undefined ? {} : { package: resolve(base, folder) }),
    ...(program === '' ? {} : { command: [/[/\\]/.test(program) ? resolve(base, program) : program, ...args] }),
  };
}

function claudeParts({ home }: Setup) {
  return { installed: installedClaude(home), newMark: () => processesAt(placeOf(home)).newMark() };
}

/** What `throughline agents install NAME` installs, and where. Throws `not_found` for an agent that it cannot install. */
export async function installTarget(home: string, agent: string) {
  const [{ INSTALLABLE_CLAUDE }, { INSTALLABLE_AGENTS, installableAgent, installFolder }] = await Promise.all([
    import('./agents/claude/find/package.ts'),
    import('./agents/acp/known/find.ts'),
  ]);
  if (agent === INSTALLABLE_CLAUDE.agent) return { what: INSTALLABLE_CLAUDE, folder: installedClaude(home) };
  const what = installableAgent(agent);
  if (what !== null) return { what, folder: installFolder(acpFolders(home).installed, agent) };
  const names = [INSTALLABLE_CLAUDE.agent, ...INSTALLABLE_AGENTS].join(', ');
  throw new ThroughlineError('not_found', `There is no agent ${JSON.stringify(agent)} to install.`, {
    hint: `These can be installed: ${names}. Others are found on PATH, see docs/acp.md.`,
  });
}

/** The folder that `throughline agents install claude` fills. */
export function installedClaude(home: string): string {
  return join(home, 'agents', 'claude');
}

/** Where agents that speak the Agent Client Protocol are installed, and where we keep what we learnt about them. */
function acpFolders(home: string) {
  return { installed: join(home, 'agents', 'acp'), memory: join(home, 'agents', 'learnt') };
}

/** For a person who has set no agents: Claude and other agents that are found, and the scripted one for whoever names it. */
async function findsAgents(home: string): Promise<() => Record<string, AgentSettings>> {
  const [{ availableClaude }, { availableAgents }] = await Promise.all([
    import('./agents/claude/find/package.ts'),
    import('./agents/acp/known/find.ts'),
  ]);
  const plain = { env: {}, options: {} };
  return () => {
    const adapter = availableClaude(installedClaude(home), process.env.PATH ?? '');
    const others = availableAgents(acpFolders(home).installed, process.env.PATH ?? '');
    return {
      ...(adapter && { claude: { adapter, ...plain } }),
      ...Object.fromEntries(others.map((name) => [name, { adapter: 'acp', ...plain } as const])),
      [SCRIPTED]: { adapter: 'scripted', ...plain },
    };
  };
}

/** Loads the agent when it is first used, so that an agent nobody uses costs nothing. */
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

async function openStore({ settings, base, home }: Setup): Promise<Store> {
  const address = settings.store ?? `sqlite:${join(home, 'throughline.db')}`;
  const [, kind, path] = /^([a-z]+):(.+)$/.exec(address) ?? [];
  if (kind !== 'sqlite' || path === undefined) {
    throw new ThroughlineError('invalid', `Unknown store "${address}".`, { hint: 'Write "sqlite:PATH".' });
  }
  const { openSqliteStore } = await import('./stores/sqlite/store.ts');
  return openSqliteStore({ file: resolve(base, path), clock: systemClock, boot: bootId() });
}

function sandboxesOf(setup: Setup): Sandboxes {
  const { home } = setup;
  const place = placeOf(home);
  return directorySandboxes({ root: sandboxRoot(setup), home, place, ...processesAt(place) });
}

function sandboxRoot({ settings, base, home }: Setup): string {
  return settings.sandbox.root === undefined ? join(home, 'sandboxes') : resolve(base, settings.sandbox.root);
}

async function composeTasks(engine: Engine, parts: EngineParts, { tasks }: Settings): Promise<Tasks> {
  const [{ createTasks }, { DEFAULT_PARALLEL }] = await Promise.all([
    import('./tasks/tasks.ts'),
    import('./tasks/parts.ts'),
  ]);
  return createTasks({
    ...parts,
    engine,
    settings: {
      ...parts.settings,
      parallel: tasks.parallel ?? DEFAULT_PARALLEL,
      get defaultAgent() {
        return parts.settings.defaultAgent;
      },
    },
  });
}

type HomeOptions = Pick<ComposeOptions, 'home' | 'config'>;

/** The doctor has no engine: opening an engine clears up after dead workers, and looking must change nothing. */
export async function composeDoctor(options: HomeOptions): Promise<Doctor> {
  const setup = createSetup(options);
  const { settings, home } = setup;
  const [store, { examine }] = await Promise.all([openStore(setup), import('./doctor/doctor.ts')]);
  const place = placeOf(home);
  const processes = processesAt(place);
  const parts = {
    store,
    processes,
    place,
    sandboxes: {
      root: sandboxRoot(setup),
      isOurs: settings.sandbox.root === undefined,
      aside: join(home, 'aside'),
      ...sandboxesOf(setup),
    },
    reap: () => freeDead(conversationLeases(store), processes),
    agentNames: async () => new Set((await composeAgents(setup)).agents.keys()),
    settle: (owner: string, turn: string) => settleTurn(options, owner, turn),
  };
  const agents = async () => {
    const [{ listAgents }, known] = await Promise.all([import('./engine/intake/agents.ts'), composeAgents(setup)]);
    return listAgents({ agents: known.agents, settings: known }, { login: true });
  };
  return { examine: () => examine(parts), agents, close: () => store.close() };
}

/** An engine that is asked for a turn ends what a dead process left of it. */
async function settleTurn(options: HomeOptions, owner: string, id: string): Promise<void> {
  const { engine } = await compose({ ...options, owner });
  try {
    const { state, stranded } = await engine.turn(id);
    if (hasEnded(state) || state === 'queued') return;
    throw new ThroughlineError('conflict', stranded?.message ?? 'Another process runs the turn now.');
  } finally {
    await engine.close();
  }
}

const LIST_MS = 60_000;

/** The agent's own sessions in a directory. Throws `agent_unavailable`, or `refused` when it cannot list them. */
export async function sessionsOfAgent(options: HomeOptions, name: string, cwd: string): Promise<NativeSession[]> {
  const { agents } = await composeAgents(readSetup(options));
  const found = agents.get(name);
  if (found === undefined) throw noSuchAgent(name, agents.keys());
  const sessions = await found.agent.list?.(cwd, AbortSignal.timeout(LIST_MS));
  if (sessions) return sessions;
  throw new ThroughlineError('refused', `The agent ${name} cannot list its sessions.`, {
    hint: 'If you know the id of a session, use it with "throughline send --session ID".',
  });
}

/** The agents that a person has set, by name, with absolute paths. Empty: no agent is set. */
export function agentsInSettings(options: HomeOptions): Record<string, AgentSettings> {
  const setup = readSetup(options);
  const absolute = (given: AgentSettings) => ({ adapter: given.adapter, ...programSettings(given, setup) });
  return Object.fromEntries(Object.entries(setup.settings.agents).map(([name, given]) => [name, absolute(given)]));
}
