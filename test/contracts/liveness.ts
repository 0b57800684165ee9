import { identityOfLocal, type ProcessIdentity, type SandboxProcess } from '../../src/core/process.ts';
import { systemProcesses } from '../../src/host/processes.ts';

export { systemProcesses };

/** Whether a process runs. A zombie does not count: its parent may take long to collect it. */
export function isAlive(pid: number): boolean {
  const identity = systemProcesses.identify(pid);
  return identity !== null && systemProcesses.status(identity) === 'alive';
}

/** The identity of a process in a sandbox of this machine. */
export function identityOf(process: SandboxProcess | null | undefined): ProcessIdentity {
  const identity = process ? identityOfLocal(process) : null;
  if (identity === null) throw new Error(`${JSON.stringify(process)} is not a process of this machine`);
  return identity;
}
