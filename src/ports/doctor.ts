import type { AgentInfo } from './engine.ts';

/** The options of `throughline doctor` that repair something. */
export type RepairOption = '--fix' | '--accept-loss' | '--delete-left-over';

/**
 * Something that a crash left behind, or that cannot continue; as HTTP shows it.
 *
 * @example
 * for (const { subject, problem } of (await tl.server?.examine()) ?? []) console.log(subject, problem);
 */
export interface PublicFinding {
  /** The check that found it. */
  readonly check: string;
  /** What it is about: a name or an id that a person can look up. */
  readonly subject: string;
  /** What is wrong, in a sentence. */
  readonly problem: string;
  /** How it is repaired, in a sentence; null: only a person can decide. */
  readonly remedy: string | null;
  /** The option of `throughline doctor` that repairs it; null: none does. */
  readonly repairedBy: RepairOption | null;
  /** True: nothing is wrong, but a person may want to know. */
  readonly isNote: boolean;
}

/** The same for `throughline doctor`, which can repair it. */
export interface Finding extends Pick<PublicFinding, 'check' | 'subject' | 'problem' | 'remedy'> {
  /**
   * The process that it is about, as a person at a shell of its machine can find it: `process 4711`. Only the command shows it, and the
   * other fields never name one. Left out: none.
   */
  readonly process?: string;
  /** The option that a person has to give for `repair`; left out: `--fix`. */
  readonly repairedBy?: RepairOption;
  /** Left out: false. */
  readonly isNote?: boolean;
  /** May be repeated. Throws a ThroughlineError when it cannot be done now. */
  repair(): Promise<void>;
}

/** Finds what crashes left behind. Changes nothing, unless a finding is repaired. */
export interface Doctor {
  examine(): Promise<Finding[]>;
  /** Every agent, each started once to probe it. A missing agent is not a finding. */
  agents(): Promise<AgentInfo[]>;
  close(): Promise<void>;
}
