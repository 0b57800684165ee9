import type { ProcessIdentity } from '../core/process.ts';

/** The operating system's processes, identified by pid, start time, boot and pid namespace; never by pid alone. */
export interface Processes {
  self(): ProcessIdentity;
  /**
   * `dead`: this is proved. `unknown`: it is in another pid namespace, or may be on another machine; its leases have to expire.
   */
  status(process: ProcessIdentity): 'alive' | 'dead' | 'unknown';
}
