import { join, resolve } from 'node:path';
import { composeAgents } from './compose-agents.ts';
import { areHere, composeSandboxes, placeAt, sandboxRoot } from './compose-sandboxes.ts';
import { hasCode, isDamage, ThroughlineError, whileWaiting } from './core/errors.ts';
import type { HealthReport } from './core/health.ts';
import { checkOptions, given, type OrUndefined, shown } from './core/input/arguments.ts';
import type { AgentSettings, Settings } from './core/input/settings.ts';
import { NO_BUDGET } from './core/limits/budget.ts';
import { slotLimits } from './core/limits/slots.ts';
import { DEFAULT_TIME_LIMITS } from './core/limits/time-limits.ts';
import { DEFAULT_RESTORE } from './core/restore/restore-settings.ts';
import { canReopen } from './core/restore/traits.ts';
import type { CredentialsFor } from './core/sandbox/credentials.ts';
import { placeSettings } from './core/sandbox/sandbox-settings.ts';
import { hasEnded, isPermissionMode, type PermissionMode } from './core/turn/turn.ts';
import type { DoctorParts } from './doctor/parts.ts';
import { createEngine } from './engine/engine.ts';
import { DEFAULT_ENGINE_SETTINGS, type EngineParts, type EngineSettings, withinTimers } from './engine/parts.ts';
import { observed } from './engine/reading/observed-store.ts';
import { systemClock } from './host/clock.ts';
import { createHome, dataHome, leftRestoreFolders, removeRestoreFolder, whyUnwritable } from './host/data-home.ts';
import { ProcessHealth } from './host/health.ts';
import { bootId, memoryLimit, processesAt, systemProcesses } from './host/processes.ts';
import { reportBug, reportLoss, reportNote, reportTrouble, seldom } from './host/report.ts';
import { readAddress, serverFiles } from './host/server-files.ts';
import { readSetup, type Setup, type SetupOptions } from './host/settings-file.ts';
import { conversationLeases, freeDead } from './leases/lease-keeper.ts';
import type { Agent } from './ports/agent.ts';
import type { Doctor } from './ports/doctor.ts';
import type { AgentInfo, Engine } from './ports/engine.ts';
import type { Health } from './ports/health.ts';
import type { Sandboxes } from './ports/sandbox.ts';
import type { Store } from './ports/store.ts';
import type { Tasks } from './ports/tasks.ts';
import type { Telemetry } from './ports/telemetry.ts';

/* Makes a running engine from the settings. Only this file and the other `compose-*.ts` name concrete parts. */

export interface ComposeOptions extends SetupOptions {
  readonly owner?: string | undefined;
  /** Where this process differs from the defaults. */
  readonly engine?: OrUndefined<Partial<Omit<EngineSettings, 'defaultAgent' | 'restore'>>> | undefined;
  /** More agents. If the settings have one of the same name, that one is used. None of these becomes the default agent. */
  readonly agents?: Readonly<Record<string, AgentSettings>> | undefined;
  /**
   * Returns what an owner logs in with at an agent, beside what the settings name. Called whenever a session is opened. See
   * docs/sandboxes.md. Left out: what the settings say, else what this process has itself.
   */
  readonly credentials?: CredentialsFor | undefined;
  /** Gets bugs of Throughline; they are never thrown at a caller. Left out: a message on stderr. */
  readonly onBug?: ((error: unknown, where: string) => void) | undefined;
  /** Called while the storage cannot be written and accepted turns wait for it; left out: a message on stderr. */
  readonly onTrouble?: ((error: ThroughlineError) => void) | undefined;
  readonly telemetry?: Telemetry | undefined;
  /** Gets the reports of what does not work in this process. Left out: only lost or damaged data is reported, on stderr. */
  readonly health?: Health | undefined;
  /** What happens when an agent asks for permission and the turn does not decide it. Left out: as the settings say. */
  readonly permissions?: PermissionMode | undefined;
  /**
   * Given: this process only reads. Data of an older version is then not upgraded, but read from a temporary copy, and this is
   * called with a note for the person. In PostgreSQL such data is refused.
   */
  readonly looks?: ((note: string) => void) | undefined;
}

export interface Composed {
  readonly engine: Engine;
  readonly parts: EngineParts;
  readonly home: string;
  /** Created when first asked for. Close it before the engine. */
  readonly tasks: () => Promise<Tasks>;
}

/** `usual`: what happens to permission questions if neither options nor settings decide it. */
export async function compose(options: ComposeOptions = {}, usual: PermissionMode = 'deny'): Promise<Composed> {
  checkValues(options);
  const setup = createSetup(options);
  const { settings, home } = setup;
  const known = await composeAgents(setup, options);
  const health = options.health ?? new ProcessHealth(reportLoss);
  const store = await openStore(setup, { health, ...given({ looks: options.looks, telemetry: options.telemetry }) });
  const processes = processesAt(placeAt(setup), home);
  const parts: EngineParts = {
    store: options.telemetry === undefined ? store : observed(store, options.telemetry, systemClock),
    agents: known.agents,
    sandboxes: composeSandboxes(setup),
    processes,
    clock: systemClock,
    ...(options.looks !== undefined && { onlyReads: true }),
    health,
    settings: {
      ...DEFAULT_ENGINE_SETTINGS,
      lock: { ...DEFAULT_ENGINE_SETTINGS.lock, ...settings.lock },
      ...limitsOf(settings),
      ...slotsOf(settings),
      sandbox: placeSettings(settings.sandbox, (path) => resolve(setup.base, path)),
      permissions: options.permissions ?? settings.permissions.mode ?? usual,
      ...withinTimers({ ...permissionWait(settings), ...given(options.engine ?? {}) }),
      get defaultAgent() {
        return known.defaultAgent;
      },
      restore: { ...DEFAULT_RESTORE, ...settings.restore },
    },
    onBug: options.onBug ?? reportBug,
    onSlots: (use) => options.telemetry?.slots?.(use),
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

function createSetup(options: SetupOptions): Setup {
  createHome(dataHome(options.home));
  return readSetup(options);
}

/** A wrong value would be noticed only later, or never. */
function checkValues({ permissions, credentials, engine = {}, onBug, onTrouble }: ComposeOptions): void {
  if (permissions !== undefined && !isPermissionMode(permissions))
    throw new ThroughlineError('invalid', `permissions must be "ask" or "deny", not ${shown(permissions)}.`);
  if (credentials !== undefined && typeof credentials !== 'function')
    throw new ThroughlineError('invalid', 'credentials must be a function of an owner and an agent.');
  for (const [name, call] of Object.entries({ onBug, onTrouble })) {
    if (call !== undefined && typeof call !== 'function')
      throw new ThroughlineError('invalid', `${name} must be a function, not ${shown(call)}.`);
  }
  checkOptions(engine, DEFAULT_ENGINE_SETTINGS, '"engine"');
}

function limitsOf({ limits }: Settings): Pick<EngineSettings, 'times' | 'spending'> {
  const { conversationPerDay = NO_BUDGET, ownerPerDay = NO_BUDGET, owners = {}, ...times } = limits;
  return {
    times: { ...DEFAULT_TIME_LIMITS, ...times },
    spending: { conversationPerDay, ownerPerDay, owners: new Map(Object.entries(owners)) },
  };
}

function slotsOf({ turns }: Settings): Pick<EngineSettings, 'maxRunning' | 'maxRunningPerOwner'> {
  const { parallel, perOwner } = slotLimits(turns, memoryLimit());
  return { maxRunning: parallel, maxRunningPerOwner: perOwner };
}

function permissionWait({ permissions: { waitSeconds } }: Settings): Partial<EngineSettings> {
  return waitSeconds === undefined ? {} : { permissionMs: waitSeconds * 1000 };
}

async function openStore(
  setup: Setup,
  { telemetry, ...options }: Pick<ComposeOptions, 'health' | 'looks' | 'telemetry'> = {},
): Promise<Store> {
  if (setup.store.kind === 'postgres') {
    const { openPostgresStore } = await import('./stores/postgres/store.ts');
    const { health } = options;
    const onConnections = telemetry?.connections?.bind(telemetry);
    const looks = options.looks !== undefined;
    return openPostgresStore({ url: setup.store.url, looks, ...given({ health, onConnections }) });
  }
  const { openSqliteStore } = await import('./stores/sqlite/store.ts');
  const { file } = setup.store;
  try {
    return await openSqliteStore({ file, clock: systemClock, boot: bootId(), onNote: reportNote, ...given(options) });
  } catch (error) {
    throw withServer(error, setup.home);
  }
}

/** Names the server of this data home in the hint of `storage_busy`, if it runs. */
function withServer(error: unknown, home: string): unknown {
  if (!hasCode(error, 'storage_busy')) return error;
  const server = readAddress(serverFiles(home));
  if (server === null || systemProcesses.status(server.process) !== 'alive') return error;
  const { message, hint, cause } = error;
  const hints = `The server ${server.url} runs. ${hint ?? ''}`.trim();
  return new ThroughlineError('storage_busy', message, { hint: hints, cause });
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

type HomeOptions = Pick<ComposeOptions, 'home' | 'config' | 'store'>;

type DoctorOptions = HomeOptions & Pick<ComposeOptions, 'looks'>;

/**
 * The doctor has no engine: opening an engine cleans up after dead workers, and an examination must change nothing. Opening the database
 * would complete a restore that was killed, so that is examined first.
 */
export async function composeDoctor(
  options: DoctorOptions,
  serverHealth: () => Promise<HealthReport | null>,
): Promise<Doctor> {
  const setup = createSetup(options);
  let composed: ReturnType<typeof composeAgents> | null = null;
  const known = () => (composed ??= composeAgents(setup));
  const compose = () => doctorOf(setup, options, { serverHealth, known });
  if (setup.store.kind !== 'sqlite') return compose();
  const { file } = setup.store;
  const { finishSwitch, unfinishedSwitch } = await import('./stores/sqlite/backup/switch.ts');
  if (unfinishedSwitch(file) === null) return compose();
  const { unfinishedRestore } = await import('./doctor/storage-checks.ts');
  let completed: Doctor | null = null;
  return {
    async examine() {
      const backup = unfinishedSwitch(file);
      if (backup !== null) return [unfinishedRestore(backup, () => finishSwitch(file))];
      completed ??= await compose();
      return completed.examine();
    },
    agents: () => listAgents(setup, known),
    close: async () => completed?.close(),
  };
}

type KnownAgents = () => ReturnType<typeof composeAgents>;

async function listAgents(setup: Setup, known: KnownAgents): Promise<AgentInfo[]> {
  const [{ AgentList }, settings] = await Promise.all([import('./engine/intake/agents.ts'), known()]);
  const parts = { agents: settings.agents, sandboxes: composeSandboxes(setup), clock: systemClock, settings };
  return new AgentList(parts).list({ login: true });
}

async function doctorOf(
  setup: Setup,
  { looks, ...options }: DoctorOptions,
  { serverHealth, known }: Pick<DoctorParts, 'serverHealth'> & { known: KnownAgents },
): Promise<Doctor> {
  const { settings, home } = setup;
  const [{ examine }, { unopened }] = await Promise.all([
    import('./doctor/doctor.ts'),
    import('./doctor/storage-checks.ts'),
  ]);
  const store = await openStore(setup, given({ looks })).catch(damageIn);
  const processes = processesAt(placeAt(setup), home);
  const sandboxes = composeSandboxes(setup);
  const restored = [...(setup.store.kind === 'sqlite' ? [setup.store.file] : []), sandboxRoot(setup)];
  const agents = () => listAgents(setup, known);
  if (store instanceof ThroughlineError) {
    return { examine: async () => [unopened(store)], agents, close: async () => {} };
  }
  const parts = {
    store,
    clock: systemClock,
    processes,
    place: sandboxes.place,
    sandboxes: {
      root: sandboxRoot(setup),
      isOurs: settings.sandbox.root === undefined || !areHere(setup),
      areHere: areHere(setup),
      aside: join(home, 'aside'),
      removeLeftOver: (id: string, check: () => Promise<void>) => removeLeftOver(sandboxes, id, check),
      ...sandboxes,
    },
    written: { paths: [home, ...restored], why: whyUnwritable },
    serverHealth,
    restoreFolders: {
      list: () => leftRestoreFolders(home, restored),
      remove: (folder: string) => removeRestoreFolder(home, folder),
    },
    reap: () => freeDead(conversationLeases(store), { processes, sandboxes }),
    reopens: async (name: string) => reopens((await known()).agents.get(name)?.agent, sandboxes),
    agentNames: async () => new Set((await known()).agents.keys()),
    endLeft: (owner: string, turn: string) => endLeftTurn(options, owner, turn),
  };
  return { examine: () => examine(parts), agents, close: () => store.close() };
}

/** How long the check of a sandbox that is left over may take. */
const LOOK_MS = 120_000;

async function removeLeftOver(sandboxes: Sandboxes, id: string, check: () => Promise<void>): Promise<void> {
  const leave = await import('./engine/sandboxes/leave.ts');
  const signal = AbortSignal.timeout(LOOK_MS);
  await leave.removeLeftOver(sandboxes, id, { signal, monotonic: () => systemClock.monotonic() }, check);
}

function damageIn(error: unknown): ThroughlineError {
  if (error instanceof ThroughlineError && isDamage(error)) return error;
  throw error;
}

/** Null: unknown, because there is no such agent here, or it cannot be started. */
async function reopens(agent: Agent | undefined, sandboxes: Sandboxes): Promise<boolean | null> {
  if (agent === undefined) return null;
  try {
    await using sandbox = await sandboxes.probe();
    return canReopen(await agent.traits(sandbox));
  } catch (error) {
    if (hasCode(error, 'agent_unavailable', 'signed_out', 'storage_readonly', 'storage_full')) return null;
    throw error;
  }
}

/** Reading a turn with an engine ends it, if a dead process left it open. */
async function endLeftTurn(options: HomeOptions, owner: string, id: string): Promise<void> {
  const { engine } = await compose({ ...options, owner });
  try {
    const { state, stranded } = await engine.turn(id);
    if (hasEnded(state) || state === 'queued') return;
    throw new ThroughlineError('conflict', stranded?.message ?? 'Another process runs the turn now.');
  } finally {
    await engine.close();
  }
}
