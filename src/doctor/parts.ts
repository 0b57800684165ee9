import type { ThroughlineError } from '../core/errors.ts';
import type { HealthReport } from '../core/health.ts';
import type { Clock } from '../ports/clock.ts';
import type { Finding } from '../ports/doctor.ts';
import type { Processes } from '../ports/processes.ts';
import type { Sandboxes } from '../ports/sandbox.ts';
import type { Census } from '../ports/store/census.ts';
import type { Store } from '../ports/store.ts';

/** What the checks look at. `compose.ts` puts it together. */
export interface DoctorParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly processes: Processes;
  readonly place: string;
  readonly sandboxes: Pick<Sandboxes, 'list' | 'find' | 'remove' | 'status' | 'end' | 'orphans'> & {
    readonly root: string;
    /** The root is inside the data home; elsewhere, other data homes may have sandboxes there, too. */
    readonly isOurs: boolean;
    /** Whether new sandboxes are created on this machine. Older ones may be here in any case. */
    readonly areHere: boolean;
    /** Where orphaned sandboxes are moved to. */
    readonly aside: string;
    /**
     * Deletes a sandbox on another machine. Throws `conflict` while it is used, and `refused` when unsaved work is in it. `check` is called
     * right before, and throws to keep it.
     */
    removeLeftOver(id: string, check: () => Promise<void>): Promise<void>;
  };
  /** What has to be writable: the data home, the database if it is a file, the directory of sandboxes. `why`: null when it is. */
  readonly written: { readonly paths: readonly string[]; why(path: string): ThroughlineError | null };
  /** The health report of the running server; null: none runs. */
  serverHealth(): Promise<HealthReport | null>;
  /** Folders of restores that were killed. `list`: null when some of them may be in use. */
  readonly restoreFolders: { list(): string[] | null; remove(folder: string): void };
  /** Ends what provably dead workers left running, and frees their leases. */
  reap(): Promise<unknown>;
  /** Whether the agent can open its sessions again; null: it is not configured here, or not available. */
  reopens(agent: string): Promise<boolean | null>;
  /** The names of the agents that are configured here. */
  agentNames(): Promise<ReadonlySet<string>>;
  /** Ends a turn that a dead process left in the middle. Throws `conflict` when that cannot be done now. */
  endLeft(owner: string, turn: string): Promise<void>;
}

/** One check. It changes nothing; `repair` of what it finds does. */
export type Check = (parts: DoctorParts, census: Census) => Promise<Finding[]>;

/** For findings that only a person can resolve. */
export const NO_REPAIR = { remedy: null, repair: async () => {} };
