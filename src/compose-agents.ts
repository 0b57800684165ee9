import { join, resolve } from 'node:path';
import { KeptAnnouncements } from './agents/shared/announcements.ts';
import { withCredentials } from './agents/shared/credentials.ts';
import { absoluteSources, credentialsOf, environmentFor } from './compose-credentials.ts';
import { composeSandboxes } from './compose-sandboxes.ts';
import { hasCode, noSuchAgent, SCRIPTED, ThroughlineError } from './core/errors.ts';
import type { Name } from './core/input/names.ts';
import type { AdapterName, AgentSettings } from './core/input/settings.ts';
import type { CredentialsFor } from './core/sandbox/credentials.ts';
import type { ConfiguredAgent } from './engine/parts.ts';
import { systemClock } from './host/clock.ts';
import { inFile, readSetup, type Setup, type SetupOptions } from './host/settings-file.ts';
import type { Agent, NativeSession } from './ports/agent.ts';

/* Makes the agents: those of the settings, or those that are found on this machine. */

interface MoreAgents {
  readonly agents?: Readonly<Record<string, AgentSettings>> | undefined;
  /** The credentials of owners, beside those that the settings name. */
  readonly credentials?: CredentialsFor | undefined;
}

/** The agents of the settings, or those that are found on this machine, and then `more`. */
export async function composeAgents(setup: Setup, more: MoreAgents = {}): Promise<KnownAgents> {
  const { settings, home } = setup;
  const isSet = Object.keys(settings.agents).length > 0;
  const make = async (name: string, value: AgentSettings) => {
    if (value.wrong !== undefined) throw value.wrong;
    const credentials = credentialsOf(name, value.credentials, { base: setup.base, given: more.credentials });
    const agent = await MAKE_AGENT[value.adapter](name, value, { ...setup, ours: environmentFor(credentials) });
    return credentials === null ? agent : withCredentials(agent, credentials);
  };
  const whenNeeded = (name: string, value: AgentSettings) =>
    configured(
      home,
      value,
      whenUsed(name, () => make(name, value)),
    );
  const agents = isSet ? new Map<string, ConfiguredAgent>() : new FoundAgents(await findsAgents(home), whenNeeded);
  for (const [name, value] of Object.entries(settings.agents)) {
    const agent = make(name, value).catch((error) => {
      const wrong = inFile(setup.file, error);
      // A mistake of a program is its author's to find, at once. One in a file concerns only those who use that agent.
      if (setup.file === null || !hasCode(wrong, 'invalid')) throw wrong;
      return whenUsed(name, () => Promise.reject(wrong));
    });
    agents.set(name, configured(home, value, await agent));
  }
  const [onlyAgent = null] = isSet && agents.size === 1 ? agents.keys() : [];
  for (const [name, value] of Object.entries(more.agents ?? {})) {
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

/** The settings of an agent that was found. */
const PLAIN = { env: {}, options: {} };
const SCRIPTED_SETTINGS: AgentSettings = { adapter: 'scripted', ...PLAIN };

/**
 * The agents that are found on this machine, for settings without agents. It also finds agents that are installed later. Looking for them
 * takes a few milliseconds, so known agents are returned without looking; the scripted one is always known.
 */
class FoundAgents implements ReadonlyMap<string, ConfiguredAgent> {
  readonly #find: () => Record<string, AgentSettings>;
  readonly #make: (name: string, settings: AgentSettings) => ConfiguredAgent;
  readonly #known = new Map<string, ConfiguredAgent>();
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** The first agent with a model that was found; null: none. It does not change while we run. */
  #first: string | null = null;

  constructor(
    find: () => Record<string, AgentSettings>,
    make: (name: string, found: AgentSettings) => ConfiguredAgent,
  ) {
    this.#find = find;
    this.#make = make;
    this.#known.set(SCRIPTED, make(SCRIPTED, SCRIPTED_SETTINGS));
  }

  get first(): string | null {
    this.#look();
    return this.#first;
  }

  get size(): number {
    return this.#look().size;
  }

  has = (name: string) => this.#known.has(name) || this.#look().has(name);
  get = (name: string) => this.#known.get(name) ?? this.#look().get(name);
  set = (name: string, agent: ConfiguredAgent) => void this.#known.set(name, agent);
  keys = () => this.#look().keys();
  values = () => this.#look().values();
  entries = () => this.#look().entries();
  [Symbol.iterator] = this.entries;

  forEach(each: Parameters<ReadonlyMap<string, ConfiguredAgent>['forEach']>[0]): void {
    for (const [name, agent] of this) each(agent, name, this);
  }

  /** All that are known after a look. */
  #look(): ReadonlyMap<string, ConfiguredAgent> {
    const now = systemClock.monotonic();
    if (now - this.#lookedAt < LOOK_AGAIN_MS) return this.#known;
    this.#lookedAt = now;
    for (const [name, found] of Object.entries(this.#find())) {
      if (this.#known.has(name)) continue;
      this.#known.set(name, this.#make(name, found));
      this.#first ??= name;
    }
    const scripted = this.#known.get(SCRIPTED);
    this.#known.delete(SCRIPTED);
    if (scripted !== undefined) this.#known.set(SCRIPTED, scripted); // agents with a model come first
    return this.#known;
  }
}

function configured(home: string, { adapter, limits }: AgentSettings, agent: Agent): ConfiguredAgent {
  const announcements = new KeptAnnouncements(acpFolders(home).memory, agent.name);
  return { agent, adapter, announcements, ...(limits && { times: limits }) };
}

/** `ours`: the part of our environment that agents may have. */
type AgentSetup = Setup & { readonly ours: NodeJS.ProcessEnv };

/** Every adapter there is, loaded when an agent uses it. */
const MAKE_AGENT: Record<AdapterName, (name: string, settings: AgentSettings, setup: AgentSetup) => Promise<Agent>> = {
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
    const { home, ours } = setup;
    return acpAgent({ name, ...programSettings(settings, setup), ...acpFolders(home), ours, clock: systemClock });
  },
};

/** Paths are relative to the settings file; the plain name of a program is searched on PATH. */
function programSettings(given: AgentSettings, { base }: Setup) {
  const { adapter: _, limits, credentials: __, package: folder, command, ...settings } = given;
  const [program = '', ...args] = command ?? [];
  return {
    ...settings,
    ...(folder === undefined ? {} : { package: resolve(base, folder) }),
    ...(program === '' ? {} : { command: [/[/\\]/.test(program) ? resolve(base, program) : program, ...args] }),
  };
}

function claudeParts({ home, ours }: AgentSetup) {
  return { installed: installedClaude(home), memory: acpFolders(home).memory, ours, clock: systemClock };
}

/** What `throughline agents install NAME` installs, and where. Throws `not_found` for an agent that it cannot install. */
export async function installTarget(home: string, agent: string) {
  const { INSTALLABLE_CLAUDE, INSTALLABLE_AGENTS, installableAgent, installFolder } = await packages();
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

/** Where agents that speak the Agent Client Protocol are installed, and where we keep what we found out about any agent. */
function acpFolders(home: string) {
  return { installed: join(home, 'agents', 'acp'), memory: join(home, 'agents', 'learnt') };
}

/** The agents that are npm packages. */
async function packages() {
  const [claude, others] = await Promise.all([
    import('./agents/claude/find/package.ts'),
    import('./agents/acp/known/packages.ts'),
  ]);
  return { ...claude, ...others };
}

/** For settings without agents: finds Claude and other agents. */
async function findsAgents(home: string): Promise<() => Record<string, AgentSettings>> {
  const { availableClaude, availableAgents } = await packages();
  return () => {
    const adapter = availableClaude(installedClaude(home), process.env.PATH ?? '');
    const others = availableAgents(acpFolders(home).installed, process.env.PATH ?? '');
    return {
      ...(adapter && { claude: { adapter, ...PLAIN } }),
      ...Object.fromEntries(others.map((name) => [name, { adapter: 'acp', ...PLAIN } as const])),
    };
  };
}

/** Loads the agent when it is first used, so that an unused agent costs nothing. */
function whenUsed(name: string, make: () => Promise<Agent>): Required<Agent> {
  let made: Promise<Agent> | null = null;
  const agent = () => {
    made ??= make();
    return made;
  };
  return {
    name,
    traits: async (...args) => (await agent()).traits(...args),
    program: async (sandbox) => (await (await agent()).program?.(sandbox)) ?? null,
    open: async (request) => (await agent()).open(request),
    position: async (...args) => (await agent()).position(...args),
    storage: async (sandbox) => (await (await agent()).storage?.(sandbox)) ?? name,
    history: async (...args) => (await (await agent()).history?.(...args)) ?? null,
    tail: async (...args) => (await agent()).tail(...args),
    where: async (sandbox) => (await (await agent()).where?.(sandbox)) ?? null,
    doubt: async (sandbox) => (await (await agent()).doubt?.(sandbox)) ?? null,
    howToAllow: async (...args) => (await (await agent()).howToAllow?.(...args)) ?? null,
    lacks: async (...args) => (await (await agent()).lacks?.(...args)) ?? null,
    list: async (...args) => (await (await agent()).list?.(...args)) ?? null,
    login: async (...args) => (await (await agent()).login?.(...args)) ?? null,
  };
}

/** The names of the agents, and of those that can be installed. No agent is loaded or started. */
export async function agentNames(options: SetupOptions, kind: 'agent' | 'installable'): Promise<Name[]> {
  if (kind === 'installable') {
    const { INSTALLABLE_CLAUDE, INSTALLABLE_AGENTS } = await packages();
    return [INSTALLABLE_CLAUDE.agent, ...INSTALLABLE_AGENTS].map((name) => ({ name, about: '' }));
  }
  const { settings, home } = readSetup(options);
  const isSet = Object.keys(settings.agents).length > 0;
  const agents = isSet ? settings.agents : { ...(await findsAgents(home))(), [SCRIPTED]: SCRIPTED_SETTINGS };
  return Object.entries(agents).map(([name, { adapter }]) => ({ name, about: adapter }));
}

const LIST_MS = 60_000;

/** The agent's own sessions in a directory. Throws `agent_unavailable`, or `refused` when it cannot list them. */
export async function sessionsOfAgent(options: SetupOptions, name: string, cwd: string): Promise<NativeSession[]> {
  const setup = readSetup(options);
  const { agents } = await composeAgents(setup);
  const found = agents.get(name);
  if (found === undefined) throw noSuchAgent(name, agents.keys());
  await using sandbox = await composeSandboxes(setup).probe({ cwd: resolve(cwd) });
  const sessions = await found.agent.list?.(sandbox, AbortSignal.timeout(LIST_MS));
  if (sessions) return sessions;
  throw new ThroughlineError('refused', `The agent ${name} cannot list its sessions.`, {
    hint: 'If you know the id of a session, use it with "throughline send --session ID".',
  });
}

/** The agents of the settings by name, with absolute paths. */
export function agentsInSettings(options: SetupOptions): Record<string, AgentSettings> {
  const setup = readSetup(options);
  const absolute = ({ credentials, wrong, ...given }: AgentSettings) => ({
    ...{ adapter: given.adapter, ...programSettings(given, setup) },
    ...(credentials && { credentials: absoluteSources(credentials, setup.base) }),
    ...(wrong && { wrong: inFile(setup.file, wrong) }),
  });
  return Object.fromEntries(Object.entries(setup.settings.agents).map(([name, given]) => [name, absolute(given)]));
}
