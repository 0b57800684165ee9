import type { ThroughlineError } from '../core/errors.ts';
import type { RestoreSettings } from '../core/restore/restore-settings.ts';
import type { PermissionMode } from '../core/turn/turn.ts';
import type { Agent } from '../ports/agent.ts';
import type { Clock } from '../ports/clock.ts';
import type { Processes } from '../ports/processes.ts';
import type { Sandboxes } from '../ports/sandbox.ts';
import type { Store } from '../ports/store.ts';

/** What an engine is made of; put together in `compose.ts`. */
export interface EngineParts {
  readonly store: Store;
  readonly agents: ReadonlyMap<string, ConfiguredAgent>;
  readonly sandboxes: Sandboxes;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly settings: EngineSettings;
  /** Told of faults of this program itself; they are never thrown at a caller. */
  readonly onBug: (error: unknown, where: string) => void;
  /** Told that the storage takes nothing just now, again and again for as long as that lasts: what was accepted waits. */
  readonly onTrouble: (error: ThroughlineError) => void;
}

export interface ConfiguredAgent {
  readonly agent: Agent;
  readonly adapter: string;
}

export interface EngineSettings {
  /** Null: a turn has to name its agent, or its conversation. */
  readonly defaultAgent: string | null;
  readonly restore: RestoreSettings;
  /** `all`: run every conversation of this place. `own`: only those that this process has submitted to. */
  readonly claims: 'all' | 'own';
  readonly leaseMs: number;
  /** How many turns may run at once in this process. */
  readonly maxRunning: number;
  /** How many conversations keep their sessions open between turns, and for how long. */
  readonly maxWarm: number;
  readonly idleMs: number;
  /** How often a turn is tried within itself when the agent failed without having done anything. */
  readonly attempts: number;
  readonly retryMs: number;
  /** Waits for a locked session: the first, doubling up to the longest, and all of them together at most. */
  readonly lock: { readonly firstMs: number; readonly longestMs: number; readonly totalMs: number };
  /** What a permission question meets when the turn does not say. */
  readonly permissions: PermissionMode;
  /** An unanswered question is a no after this long. */
  readonly permissionMs: number;
  /** Text is gathered for at most this long before it is stored. */
  readonly flushMs: number;
  /** How long a full or busy disk is waited for in the middle of a turn. */
  readonly storageMs: number;
  /** How often a reader looks for itself, should every bell be lost. */
  readonly pollMs: number;
}

export const DEFAULT_ENGINE_SETTINGS: Omit<EngineSettings, 'defaultAgent' | 'restore'> = {
  claims: 'own',
  leaseMs: 15_000,
  maxRunning: 64,
  maxWarm: 8,
  idleMs: 300_000,
  attempts: 2,
  retryMs: 500,
  lock: { firstMs: 100, longestMs: 5_000, totalMs: 30_000 },
  permissions: 'ask',
  permissionMs: 600_000,
  flushMs: 50,
  storageMs: 60_000,
  pollMs: 2_000,
};

/** A longer timer fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Whoever sets a time without end gets the longest that there is, and not none. */
export function withinTimers<T extends object>(settings: T): T {
  const fitting = (value: unknown) => (typeof value === 'number' ? Math.min(value, LONGEST_TIMER_MS) : value);
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, fitting(value)])) as T;
}
