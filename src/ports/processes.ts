import type { ProcessIdentity } from '../core/process.ts';

/** The operating system's processes, told apart by pid, start time, boot and pid namespace; never by pid alone. */
export interface Processes {
  self(): ProcessIdentity;
  /** `unknown`: a process of another pid namespace, about which nothing can be said from here. */
  status(process: ProcessIdentity): 'alive' | 'dead' | 'unknown';
  /**
   * Ends the process and its group with SIGKILL and waits until it is gone. Does nothing to one that is dead already, and
   * never touches another process that got the same pid. `unknown`: could not be told; nothing was killed.
   */
  end(process: ProcessIdentity): Promise<'ended' | 'unknown'>;
}
