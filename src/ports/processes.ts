import type { ProcessIdentity } from '../core/process.ts';

/** The operating system's processes, told apart by pid, start time, boot and pid namespace; never by pid alone. */
export interface Processes {
  self(): ProcessIdentity;
  /** `unknown`: a process of another pid namespace, about which nothing can be said from here. */
  status(process: ProcessIdentity): 'alive' | 'dead' | 'unknown';
  /**
   * Ends the process and its group with SIGKILL, and waits until it is gone; then all else that has its mark. One that is dead
   * already may have left such behind. Another process that got the same pid is never touched. `unknown`: could not be told;
   * nothing was killed.
   */
  end(process: ProcessIdentity): Promise<'ended' | 'unknown'>;
}
