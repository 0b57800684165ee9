/** One process, told apart from a later one that has the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, as the operating system counts it; opaque. */
  readonly started: string;
  /** This boot of this machine; a process of another boot is dead. */
  readonly boot: string;
  /** The pid namespace; a pid of another namespace says nothing here. */
  readonly namespace: string;
}
