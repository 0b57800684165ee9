/** One process, told apart from a later one that has the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, as the operating system counts it; opaque. */
  readonly started: string;
  /** This boot of this machine; a process of another boot is dead. */
  readonly boot: string;
  /** The pid namespace; a pid of another namespace says nothing here. */
  readonly namespace: string;
  /** What it, and all that it starts, has in its environment under `MARK`; left out: nothing. */
  readonly mark?: string;
}

/**
 * The name of a variable that every agent starts with, its value unlike any other. Agents give tools a process group of their
 * own (Claude does), and those outlive both the group and the agent: by the mark they are found all the same.
 */
export const MARK = 'THROUGHLINE_MARK';
