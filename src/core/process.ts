/** One process, distinguishable from a later one with the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, as the operating system counts it; opaque. */
  readonly started: string;
  /** This boot of this machine; a process of another boot is dead. */
  readonly boot: string;
  /** The pid namespace; a pid of another namespace means nothing here. */
  readonly namespace: string;
  /** The value of `MARK` in its environment and in that of everything it starts; left out: it has none. */
  readonly mark?: string;
}

/**
 * An environment variable that every agent starts with; its value is unique. Agents may start tools in process groups of their own
 * (Claude does), which outlive the agent and its group. The mark finds them.
 */
export const MARK = 'THROUGHLINE_MARK';
