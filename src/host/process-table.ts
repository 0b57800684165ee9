/** What the operating system knows about one process right now. */
export interface ProcessEntry {
  /** When it started; two processes that share a pid differ in it. */
  readonly started: string;
  /** The process group it is in. */
  readonly group: number;
  /** It has ended and only waits to be reaped. */
  readonly zombie: boolean;
}

/** One operating system's way of looking at processes. */
export interface ProcessTable {
  /** Null: there is no such process, or it is hidden from us. */
  look(pid: number): ProcessEntry | null;
  /** Those whose environment has one of these marks, as far as it is shown to us; empty where the system shows none. */
  marked(marks: ReadonlySet<string>): number[];
  /** This boot of this machine. */
  boot(): string;
  /** The pid namespace that we live in. */
  namespace(): string;
}
