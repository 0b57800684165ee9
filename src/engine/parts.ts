import type { ThroughlineError } from '../core/errors.ts';
import { NO_BUDGET } from '../core/limits/budget.ts';
import type { SpendingSettings } from '../core/limits/spending.ts';
import { DEFAULT_TIME_LIMITS, type TimeLimits, type TimeOverride } from '../core/limits/time-limits.ts';
import type { LockSettings } from '../core/restore/lock-wait.ts';
import type { RestoreSettings } from '../core/restore/restore-settings.ts';
import { EXEC_MS } from '../core/sandbox/sandbox.ts';
import { NO_PLACE_SETTINGS, type PlaceSettings } from '../core/sandbox/sandbox-settings.ts';
import type { PermissionMode } from '../core/turn/turn.ts';
import type { Agent, Announcements } from '../ports/agent.ts';
import type { Clock } from '../ports/clock.ts';
import type { Health } from '../ports/health.ts';
import type { Processes } from '../ports/processes.ts';
import type { Sandboxes } from '../ports/sandbox.ts';
import type { Store } from '../ports/store.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** The parts of an engine; `compose.ts` puts them together. */
export interface EngineParts {
  readonly store: Store;
  readonly agents: ReadonlyMap<string, ConfiguredAgent>;
  readonly sandboxes: Sandboxes;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly settings: EngineSettings;
  /** Whether this process only reads what is stored. Left out: no. */
  readonly onlyReads?: boolean;
  /** Gets what does not work, for those who operate this process. */
  readonly health: Health;
  /** Gets bugs of this program. They are never thrown to a caller. */
  readonly onBug: (error: unknown, where: string) => void;
  /** Called again and again while the storage cannot be written. Accepted turns wait. */
  readonly onTrouble: (error: ThroughlineError) => void;
  /** Gets how the slots of this process are used, whenever that changes. */
  readonly onSlots?: Telemetry['slots'];
}

export interface ConfiguredAgent {
  readonly agent: Agent;
  readonly adapter: string;
  /** Left out: they are not kept. */
  readonly announcements?: Announcements;
  /** Left out: those of the settings. */
  readonly times?: TimeOverride;
}

export interface EngineSettings {
  /** Null: a turn has to name its agent, or its conversation. */
  readonly defaultAgent: string | null;
  readonly restore: RestoreSettings;
  /**
   * `own`: run only the conversations that this process has submitted to. `left`: also those of its place that no other process
   * has taken within a second. `all`: every conversation of its place, at once.
   */
  readonly claims: 'own' | 'left' | 'all';
  readonly leaseMs: number;
  /** How many turns may run at once in this process, and how many of them for one owner. */
  readonly maxRunning: number;
  readonly maxRunningPerOwner: number;
  /** How many conversations keep their sessions open between turns, and for how long. */
  readonly maxWarm: number;
  readonly idleMs: number;
  /** How many attempts a turn has when the agent fails without having done anything. */
  readonly attempts: number;
  readonly retryMs: number;
  readonly lock: LockSettings;
  /** How permission questions are handled if the turn does not set it: `ask` somebody, or `deny` at once. */
  readonly permissions: PermissionMode;
  /** An unanswered question is denied after this time. */
  readonly permissionMs: number;
  /** How long a turn may take, unless the turn or its agent sets that. */
  readonly times: TimeLimits;
  /** How sandboxes are set up, limited, put to rest and removed. */
  readonly sandbox: PlaceSettings;
  /** How long a command of a caller may take in a sandbox, with the set-up that the sandbox needs first. */
  readonly execMs: number;
  /** How much may be spent on a day (UTC). */
  readonly spending: SpendingSettings;
  /** Text is collected for at most this time before it is stored. */
  readonly flushMs: number;
  /** How long a running turn waits for a full or busy disk. */
  readonly storageMs: number;
  /** How often a reader reads without a notification, because notifications may be lost. */
  readonly pollMs: number;
}

export const DEFAULT_ENGINE_SETTINGS: Omit<EngineSettings, 'defaultAgent' | 'restore'> = {
  claims: 'own',
  leaseMs: 15_000,
  maxRunning: 64,
  maxRunningPerOwner: Number.POSITIVE_INFINITY,
  maxWarm: 8,
  idleMs: 300_000,
  attempts: 2,
  retryMs: 500,
  lock: { firstMs: 100, longestMs: 5_000, totalMs: 30_000 },
  permissions: 'deny',
  permissionMs: 600_000,
  times: DEFAULT_TIME_LIMITS,
  spending: { conversationPerDay: NO_BUDGET, ownerPerDay: NO_BUDGET, owners: new Map() },
  sandbox: NO_PLACE_SETTINGS,
  execMs: EXEC_MS,
  flushMs: 50,
  storageMs: 60_000,
  pollMs: 2_000,
};

/** Node fires a longer timer at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Limits all numbers to what a timer can wait; an infinite time becomes the longest one. */
export function withinTimers<T extends object>(settings: T): T {
  const fitting = (value: unknown) => (typeof value === 'number' ? Math.min(value, LONGEST_TIMER_MS) : value);
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, fitting(value)])) as T;
}
