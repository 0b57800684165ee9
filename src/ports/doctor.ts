import type { AgentInfo } from './engine.ts';

/** Something that was left over, or cannot go on. */
export interface Finding {
  /** Which check has found it. */
  readonly check: string;
  /** What it is about, as a person can look it up. */
  readonly subject: string;
  /** What is wrong, in a sentence. */
  readonly problem: string;
  /** What `repair` does, in a sentence; null: only a person can decide. */
  readonly remedy: string | null;
  /** May be repeated. Throws a ThroughlineError when it cannot be done now. */
  repair(): Promise<void>;
}

/** Looks for what crashes have left over. Looking changes nothing. */
export interface Doctor {
  examine(): Promise<Finding[]>;
  /** Every agent there is, each started for a look. One that is missing is nothing that was left over. */
  agents(): Promise<AgentInfo[]>;
  close(): Promise<void>;
}
