import type { SandboxProcess } from '../../core/process.ts';
import type { SessionState } from '../../core/restore/session.ts';
import type { TaskState } from '../../core/tasks/task.ts';
import type { Standing } from '../../core/turn/standing.ts';

/** What is stored of all owners, to find what crashes left behind. Reads everything: for rare use. */
export interface Census {
  /** Sessions that are stored as live, or as held by a process. Not those of trackers, which hold their sessions themselves. */
  readonly sessions: readonly CensusSession[];
  /** Conversations with an open turn. Not those of trackers. */
  readonly standings: readonly Standing[];
  /** The ids of all sandboxes that conversations have or that are listed. */
  readonly sandboxes: readonly string[];
  /** Those of them that only erased conversations have. */
  readonly erased: readonly CensusErased[];
  /** The places of all conversations that workers run, with how many each has. `name` null: not known. */
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
  /** It is the session of its agent that the conversation used last. */
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
  /** The sandbox should have been deleted as well. */
  readonly toDelete: boolean;
}

export interface CensusTask {
  readonly owner: string;
  readonly id: string;
  readonly state: TaskState;
  readonly gate: SandboxProcess | null;
  /** The tasks it waits for that will not finish by themselves. */
  readonly blockedBy: readonly string[];
}

/** How large the storage is, and how fast it writes. */
export interface StoreMeasure {
  /** `bytes`: of the data. `logBytes`: of recent writes that are still in the log, and not in the data. */
  readonly bytes: number;
  readonly logBytes: number;
  /** The part of `bytes` that is free for new data. */
  readonly freeBytes: number;
  /** How many transactions this process has committed. */
  readonly commits: number;
  /** How long the last ones (at most 256) took until they were durable, in milliseconds; null: there was none. */
  readonly commitMs: { readonly p50: number; readonly p95: number; readonly max: number } | null;
  /** Left out: it is a file. */
  readonly connections?: StoreConnections;
}

/** The connections of this process to a database server, and how many verbs wait for one. */
export interface StoreConnections {
  /** The limit. */
  readonly most: number;
  readonly used: number;
  readonly idle: number;
  readonly waiting: number;
}

/** What is damaged in the storage itself. */
export interface Inspection {
  /** The messages of the storage's own check; empty: no faults. */
  readonly faults: readonly string[];
  /** The conversations of which something cannot be read. Only searched for if there are faults. */
  readonly damaged: readonly { readonly owner: string; readonly id: string; readonly key: string | null }[];
}
