import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessIdentity } from '../core/process.ts';
import type { Processes } from '../ports/processes.ts';
import type { ProcessTable } from './process-table.ts';
import { procfs } from './procfs.ts';
import { ps } from './ps.ts';

const END_WAIT_MS = 5_000;

/** Processes as one process table shows them. */
export function processesOf(table: ProcessTable): Processes & { identify(pid: number): ProcessIdentity | null } {
  // Neither changes while we live, and reading them costs a system call or even a program.
  let boot: string | undefined;
  let namespace: string | undefined;
  let self: ProcessIdentity | undefined;
  const thisBoot = () => (boot ??= table.boot());
  const thisNamespace = () => (namespace ??= table.namespace());

  function identify(pid: number): ProcessIdentity | null {
    const entry = table.look(pid);
    return entry && { pid, started: entry.started, boot: thisBoot(), namespace: thisNamespace() };
  }

  function status(identity: ProcessIdentity): 'alive' | 'dead' | 'unknown' {
    if (identity.boot !== thisBoot()) return 'dead';
    if (identity.namespace !== thisNamespace()) return 'unknown';
    const entry = table.look(identity.pid);
    // /proc may hide other users' processes; the signal 0 still tells whether there is one.
    if (entry === null) return belongsToOthers(identity.pid) ? 'unknown' : 'dead';
    return entry.started === identity.started && !entry.zombie ? 'alive' : 'dead';
  }

  return {
    identify,
    status,
    self() {
      self ??= identify(process.pid) ?? undefined;
      if (self === undefined) throw new Error('the operating system does not show us our own process');
      return self;
    },
    async end(identity) {
      const before = status(identity);
      if (before !== 'alive') return before === 'dead' ? 'ended' : 'unknown';
      // A record that names ourselves can only be a mistake; obeying it would end the one who is to clean up.
      if (identity.pid === process.pid) return 'unknown';
      const leadsGroup = table.look(identity.pid)?.group === identity.pid;
      if (!signal(leadsGroup ? -identity.pid : identity.pid, 'SIGKILL')) return 'unknown';
      return (await gone(() => status(identity) === 'dead')) ? 'ended' : 'unknown';
    },
  };
}

/** This machine's processes. */
export const systemProcesses = processesOf(process.platform === 'linux' ? procfs : ps);

/** The process with this pid; null: there is none. Right after a spawn, before the child can be reaped, there always is. */
export function identify(pid: number): ProcessIdentity | null {
  return systemProcesses.identify(pid);
}

/** This boot of this machine. */
export function bootId(): string {
  return systemProcesses.self().boot;
}

/** False: it exists, and we may not signal it. One that is gone already counts as signalled. */
function signal(pid: number, name: 'SIGKILL' | 0): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

function belongsToOthers(pid: number): boolean {
  return !signal(pid, 0);
}

async function gone(check: () => boolean): Promise<boolean> {
  const deadline = performance.now() + END_WAIT_MS;
  for (let pause = 1; ; pause = Math.min(pause * 2, 50)) {
    if (check()) return true;
    if (performance.now() > deadline) return false;
    await sleep(pause);
  }
}
