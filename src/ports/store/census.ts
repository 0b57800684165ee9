import type { ProcessIdentity } from '../../core/process.ts';
import type { SessionState } from '../../core/session.ts';
import type { TaskState } from '../../core/tasks/task.ts';

/** What is on record, of all owners, for whoever looks for what was left over. Reads everything: not for every day. */
export interface Census {
  /** Sessions that are on record as live, or as held by a process. Not those of trackers, who hold them themselves. */
  readonly sessions: readonly CensusSession[];
  /** The ids of all sandboxes that conversations have. */
  readonly sandboxes: readonly string[];
  /** Tasks that are not at rest. */
  readonly tasks: readonly CensusTask[];
}

export interface CensusSession {
  readonly owner: string;
  readonly conversation: string;
  readonly ref: string;
  readonly id: string;
  readonly agent: string;
  readonly state: SessionState;
  readonly turns: number;
  readonly process: ProcessIdentity | null;
  /** Somebody has the lease of its conversation. */
  readonly held: boolean;
  /** Open turns of its conversation. */
  readonly open: number;
}

export interface CensusTask {
  readonly owner: string;
  readonly id: string;
  readonly state: TaskState;
  readonly gate: ProcessIdentity | null;
  /** Those it comes after that will not be done by themselves. */
  readonly blockedBy: readonly string[];
}
