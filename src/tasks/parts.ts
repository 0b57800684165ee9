import type { ThroughlineError } from '../core/errors.ts';
import type { Agent } from '../ports/agent.ts';
import type { Clock } from '../ports/clock.ts';
import type { Engine } from '../ports/engine.ts';
import type { Health } from '../ports/health.ts';
import type { Processes } from '../ports/processes.ts';
import type { Sandboxes } from '../ports/sandbox.ts';
import type { Store } from '../ports/store.ts';

/** The parts of the task system; `compose.ts` puts them together. */
export interface TaskParts {
  readonly engine: Engine;
  readonly store: Store;
  readonly agents: ReadonlyMap<string, { readonly agent: Agent }>;
  readonly sandboxes: Sandboxes;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly settings: TaskSettings;
  readonly health: Health;
  /** Called when stored data is damaged. */
  readonly onTrouble: (error: ThroughlineError) => void;
  /** Gets bugs of this program. */
  readonly onBug: (error: unknown, where: string) => void;
}

interface TaskSettings {
  /** Null: a task has to name its agent. */
  readonly defaultAgent: string | null;
  /** `own`: only the tasks that this process was asked to run. Otherwise every task of this place. */
  readonly claims: 'own' | 'left' | 'all';
  readonly leaseMs: number;
  /** How many tasks of this place may run at once, in all processes together, while no plan asks for more. */
  readonly parallel: number;
  /** How often a reader reads without a notification, because notifications may be lost. */
  readonly pollMs: number;
}

export const DEFAULT_PARALLEL = 4;
