import { endMarked, identify, systemProcesses } from '../../src/host/processes.ts';

export { endMarked, identify };

/** Whether a process still does anything. A zombie does not; whoever adopted it may take long to notice its end. */
export function isAlive(pid: number): boolean {
  const identity = identify(pid);
  return identity !== null && systemProcesses.status(identity) === 'alive';
}
