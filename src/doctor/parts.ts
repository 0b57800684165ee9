import type { Finding } from '../ports/doctor.ts';
import type { Processes } from '../ports/processes.ts';
import type { Census } from '../ports/store/census.ts';
import type { Store } from '../ports/store.ts';

/** What the checks look at; put together in `compose.ts`. */
export interface DoctorParts {
  readonly store: Store;
  readonly processes: Processes;
  readonly place: string;
  /** Where sandboxes lie, and where those are put that nobody knows. */
  readonly sandboxes: {
    readonly root: string;
    /** It lies in the data home; else other homes may have sandboxes there. */
    readonly isOurs: boolean;
    readonly aside: string;
  };
  /** Ends what provably dead workers left running, and frees their leases. */
  reap(): Promise<boolean>;
}

/** One thing to look for: one file. */
export type Check = (parts: DoctorParts, census: Census) => Promise<Finding[]>;
