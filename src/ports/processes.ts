import type { ProcessIdentity } from '../core/process.ts';

/** The operating system's processes, identified by pid, start time, boot and pid namespace; never by pid alone. */
export interface Processes {
  self(): ProcessIdentity;
  /**
   * `dead`: this is proved. `unknown`: it is in another pid namespace, or may be on another machine; its leases have to expire.
   */
  status(process: ProcessIdentity): 'alive' | 'dead' | 'unknown';
}

/** The operating system's processes, and what starting a program needs. */
export interface HostProcesses extends Processes {
  /** The process with this pid; null: there is none. Never null right after a spawn, before the child can be reaped. */
  identify(pid: number): ProcessIdentity | null;
  /** Whether a child of ours has ended, also if its exit was not reported to us yet. False where asking the system is slow. */
  hasEnded(child: ProcessIdentity): boolean;
  /**
   * Kills the process and its group, and every process with its mark, and waits until it is gone. For a dead process, kills those with
   * its mark. Another process with the same pid is never touched. `unknown`: it could not be identified, and nothing was killed.
   */
  end(process: ProcessIdentity): Promise<'ended' | 'unknown'>;
  /**
   * Programs that processes of this data home started and that run although their starter is provably dead. They are found by
   * their marks, so also those that nobody could record. Empty where the system shows no environments. Looks at every process, a few
   * in each turn of the event loop, so that other work is not delayed.
   */
  orphans(): Promise<ProcessIdentity[]>;
  /** Ends every process that has the mark. Looks at every process, a few at a time; concurrent calls share one look. */
  endMarked(mark: string): Promise<void>;
  /** The same, synchronous: for the exit of our own process. */
  endMarkedNow(mark: string): void;
  /** A mark for a program that we start. */
  newMark(): string;
}
