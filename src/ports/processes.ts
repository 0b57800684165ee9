import type { ProcessIdentity } from '../core/process.ts';

/** The operating system's processes, identified by pid, start time, boot and pid namespace; never by pid alone. */
export interface Processes {
  self(): ProcessIdentity;
  /** `unknown`: a process of another pid namespace, about which nothing can be said from here. */
  status(process: ProcessIdentity): 'alive' | 'dead' | 'unknown';
  /**
   * Kills the process and its group and waits until it is gone; then everything else that has its mark, which also a dead process
   * may have left behind. Another process with the same pid is never touched. `unknown`: it could not be identified, and nothing
   * was killed.
   */
  end(process: ProcessIdentity): Promise<'ended' | 'unknown'>;
  /**
   * Programs that processes of this data home started and that run although their starter is provably dead. They are found by
   * their marks, so also those that nobody could record. Empty where the system shows no environments. Looks at every process.
   */
  orphans(): ProcessIdentity[];
}
