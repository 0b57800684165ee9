import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
import type { ProcessIdentity } from '../core/process.ts';
import type { Processes } from '../ports/processes.ts';
import { systemClock } from './clock.ts';
import { type ProcessTable, procfs, ps } from './process-table.ts';

const END_WAIT_MS = 5_000;

type Kill = (pid: number, signal: 'SIGKILL' | 0) => void;

/** Processes as one process table shows them. */
export function processesOf(
  table: ProcessTable,
  kill: Kill = (pid, signal) => process.kill(pid, signal),
): Processes & { identify(pid: number): ProcessIdentity | null; endMarked(mark: string): void } {
  // None of these changes while we live, and reading them costs a system call or even a program.
  let boot: string | undefined;
  let namespace: string | undefined;
  let self: ProcessIdentity | undefined;
  const marked = markedProcesses(table, kill);
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
    // /proc may hide other users' processes, and reading it fails without free file numbers. Declaring a living owner dead
    // would be the worst mistake here, so the signal 0 has to agree that there is nobody.
    if (entry === null) return signal(kill, identity.pid, 0) === 'gone' ? 'dead' : 'unknown';
    return entry.started === identity.started && !entry.zombie ? 'alive' : 'dead';
  }

  return {
    identify,
    status,
    endMarked: (mark) => marked.end(new Set([mark])),
    self() {
      self ??= identify(process.pid) ?? undefined;
      if (self === undefined) throw new Error('the operating system does not show us our own process');
      return self;
    },
    async end(identity) {
      const before = status(identity);
      if (before === 'unknown') return before;
      const { mark } = identity;
      if (before === 'dead') {
        if (mark !== undefined && identity.boot === thisBoot()) await marked.endTogether(mark);
        return 'ended';
      }
      // A record that names ourselves can only be a mistake; obeying it would end the one who is to clean up.
      if (identity.pid === process.pid) return 'unknown';
      const leadsGroup = table.look(identity.pid)?.group === identity.pid;
      if (signal(kill, leadsGroup ? -identity.pid : identity.pid, 'SIGKILL') === 'forbidden') return 'unknown';
      if (mark !== undefined) await marked.endTogether(mark);
      return (await gone(() => status(identity) === 'dead')) ? 'ended' : 'unknown';
    },
  };
}

/** Ends the processes that have a mark in their environment. */
function markedProcesses(table: ProcessTable, kill: Kill) {
  /** A killed process starts nothing any more: when a look shows no new process, none is left. */
  function end(marks: ReadonlySet<string>): void {
    const ended = new Set<number>([process.pid]);
    for (;;) {
      const found = table.marked(marks).filter((pid) => !ended.has(pid));
      if (found.length === 0) return;
      for (const pid of found) {
        ended.add(pid);
        signal(kill, pid, 'SIGKILL');
      }
    }
  }

  /** A look at all processes costs the same for one mark as for many: callers of the same moment share it. */
  let gathering: { readonly marks: Set<string>; readonly ended: Promise<void> } | null = null;
  function endTogether(mark: string): Promise<void> {
    if (gathering === null) {
      const marks = new Set<string>();
      const ended = immediate().then(() => {
        gathering = null;
        end(marks);
      });
      gathering = { marks, ended };
    }
    gathering.marks.add(mark);
    return gathering.ended;
  }

  return { end, endTogether };
}

/** This machine's processes. */
export const systemProcesses = processesOf(process.platform === 'linux' ? procfs : ps);

/**
 * `identify`: the process with this pid; null: there is none. Right after a spawn, before the child can be reaped, there always
 * is. `endMarked`: ends every process that has the mark.
 */
export const { identify, endMarked } = systemProcesses;

/** This boot of this machine. */
export function bootId(): string {
  return systemProcesses.self().boot;
}

function signal(kill: Kill, pid: number, name: 'SIGKILL' | 0): 'sent' | 'gone' | 'forbidden' {
  try {
    kill(pid, name);
    return 'sent';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH' ? 'gone' : 'forbidden';
  }
}

async function gone(check: () => boolean): Promise<boolean> {
  const deadline = systemClock.monotonic() + END_WAIT_MS;
  for (let pause = 1; ; pause = Math.min(pause * 2, 50)) {
    if (check()) return true;
    if (systemClock.monotonic() > deadline) return false;
    await sleep(pause);
  }
}
