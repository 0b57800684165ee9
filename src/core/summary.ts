import type { ProcessIdentity } from './process.ts';
import type { Usage } from './turn/usage.ts';

/** The fields of a summary that are shown as they are stored. */
export interface ShownSummary {
  readonly key: string | null;
  readonly title: string;
  /** Completed turns. */
  readonly contexts: number;
  /** The numbers and times of the first and the last completed turn; null: none yet. */
  readonly first: { readonly n: number; readonly at: number } | null;
  readonly last: { readonly n: number; readonly at: number } | null;
  /** How many sessions of agents the conversation has used, and how often it changed from one to another. */
  readonly sessions: number;
  readonly changes: number;
  /** Turns that have not ended. */
  readonly open: number;
  readonly usage: Usage;
}

/** An overview of a conversation; it costs the same at any length. */
export interface Summary extends ShownSummary {
  readonly conversation: string;
  readonly lock: Lock | null;
}

/** Who holds a conversation, and until when unless renewed. */
export interface Lock {
  readonly holder: string;
  readonly process: ProcessIdentity;
  readonly epoch: number;
  /** Milliseconds left. */
  readonly expiresIn: number;
}
