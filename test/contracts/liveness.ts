import { identityOfLocal, type ProcessIdentity, type SandboxProcess } from '../../src/core/process.ts';
import { systemProcesses } from '../../src/host/processes.ts';

export { systemProcesses };

/** Whether a process still does anything. A zombie does not; whoever adopted it may take long to notice its end. */
export function isAlive(pid: number): boolean {
  const identity = systemProcesses.identify(pid);
  return identity !== null && systemProcesses.status(identity) === 'alive';
}

/** What the sandboxes of this machine know of a process in them. */
export function identityOf(process: SandboxProcess | null | undefined): ProcessIdentity {
  const identity = process ? identityOfLocal(process) : null;
  if (identity === null) throw new Error(`${JSON.stringify(process)} is no process of this machine`);
  return identity;
}
