import type { SandboxProcess } from '../../core/process.ts';
import type { SessionState } from '../../core/restore/session.ts';
import type { TaskState } from '../../core/tasks/task.ts';
import type { Standing } from '../../core/turn/standing.ts';

/** What is stored of all owners, for finding what crashes left over. Reads everything: for rare use. */
export interface Census {
  /** Sessions that are stored as live, or as held by a process. Not those of trackers, which hold their sessions themselves. */
  readonly sessions: readonly CensusSession[];
  /** Conversations with an open turn. Not those of trackers. */
  readonly standings: readonly Standing[];
  /** The ids of all sandboxes that conversations have, and of those that are listed. */
  readonly sandboxes: readonly string[];
  /** Those of them that only erased conversations have. */
  readonly erased: readonly CensusErased[];
  /** The places of all conversations that are run there, with how many there are. `name` null: none is known. */
  readonly places: readonly { readonly place: string; readonly name: string | null; readonly conversations: number }[];
  /** Unfinished tasks. */
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
  /** None of its agent was used in the conversation since. */
  readonly newest: boolean;
  readonly process: SandboxProcess | null;
  /** Somebody has the lease of its conversation. */
  readonly held: boolean;
  /** Open turns of its conversation. */
  readonly open: number;
}

/** A conversation that was erased, and the sandbox that it had. */
export interface CensusErased {
  readonly owner: string;
  readonly conversation: string;
  readonly sandbox: string;
  /** The sandbox was to be deleted as well. */
  readonly toDelete: boolean;
}

export interface CensusTask {
  readonly owner: string;
  readonly id: string;
  readonly state: TaskState;
  readonly gate: SandboxProcess | null;
  /** Tasks it waits for that will not finish by themselves. */
  readonly blockedBy: readonly string[];
}

/** How large the storage is, and how fast it writes. */
export interface StoreMeasure {
  /** Of the data, and of what was written lately and is not yet among it. */
  readonly bytes: number;
  readonly logBytes: number;
  /** Of `bytes`: what nothing uses now, and new data will. */
  readonly freeBytes: number;
  /** How many transactions this process has committed. */
  readonly commits: number;
  /** How long its last ones took, in milliseconds, until they were durable (at most 256); null: there was none. */
  readonly commitMs: { readonly p50: number; readonly p95: number; readonly max: number } | null;
  /** Left out: it is a file. */
  readonly connections?: StoreConnections;
}

/** The connections of this process to a database server, and how many verbs wait for one. */
export interface StoreConnections {
  /** There are never more. */
  readonly most: number;
  readonly used: number;
  readonly idle: number;
  readonly waiting: number;
}

/** What is damaged in the storage itself. */
export interface Inspection {
  /** What the storage's own check found, in its words; empty: all is well. */
  readonly faults: readonly string[];
  /** The conversations of which something cannot be read. Only looked for when there are faults. */
  readonly damaged: readonly { readonly owner: string; readonly id: string; readonly key: string | null }[];
}
