import { identityOfLocal, type ProcessIdentity, type SandboxProcess, starterOf } from '../../core/process.ts';
import type { HostProcesses } from '../../ports/processes.ts';
import type { Sandboxes } from '../../ports/sandbox.ts';
import { localProcesses } from '../shared/local-sandbox.ts';
import { type EngineName, labelled, MARK_LABEL, marksOf, PART_LABEL, removeLabelled } from './engine.ts';

/*
 * Programs in containers. They are found by the labels of their containers, also after the client of the engine, conmon or our process has
 * died.
 */

export interface ContainerIdentity {
  readonly engine: EngineName;
  readonly mark: string;
  /** The id of a part of another program; null: it is a whole, and everything with its mark belongs to it. */
  readonly part: string | null;
  /** The process of the engine's client. It shows on which machine and boot the container is. */
  readonly client: ProcessIdentity;
}

const CONTAINER = 'container';

export function containerProcess(identity: ContainerIdentity): SandboxProcess {
  return { kind: CONTAINER, id: JSON.stringify(identity), label: `container, process ${identity.client.pid}` };
}

/** Null: it is of another kind, or not readable. */
export function identityOfContainer({ kind, id }: SandboxProcess): ContainerIdentity | null {
  if (kind !== CONTAINER) return null;
  try {
    const { engine, mark, part, client } = JSON.parse(id) as Partial<ContainerIdentity>;
    if ((engine !== 'podman' && engine !== 'docker') || typeof mark !== 'string' || client === undefined) return null;
    return { engine, mark, part: part ?? null, client };
  } catch {
    return null;
  }
}

export function labelOf({ mark, part }: Pick<ContainerIdentity, 'mark' | 'part'>): string {
  return part === null ? `${MARK_LABEL}=${mark}` : `${PART_LABEL}=${part}`;
}

type Started = Pick<Sandboxes, 'status' | 'end' | 'orphans'>;

/** For containers and for plain processes, because the settings may have changed. `engine`: its orphans are listed; null: no containers. */
export function containerProcesses(processes: HostProcesses, place: string, engine: EngineName | null): Started {
  const local = localProcesses(processes);
  return {
    async status(process) {
      const identity = identityOfContainer(process);
      if (identity === null) return local.status(process);
      const client = processes.status(identity.client);
      if (client !== 'dead') return client;
      if (isOver(processes, identity)) return 'dead';
      const found = await labelled(identity.engine, labelOf(identity), { isRunning: true }).catch(() => null);
      if (found === null) return 'unknown';
      return found.length === 0 ? 'dead' : 'alive';
    },
    async end(process) {
      const identity = identityOfContainer(process);
      if (identity === null) return local.end(process);
      const { mark, part, client } = identity;
      // For a part, only its own client: all parts have the same mark.
      const ended = await processes.end(part === null ? { ...client, mark } : client);
      if (ended === 'unknown' || isOver(processes, identity)) return ended;
      try {
        await removeLabelled(identity.engine, labelOf(identity));
        return 'ended';
      } catch {
        return 'unknown';
      }
    },
    async orphans() {
      const others = await local.orphans();
      if (engine === null) return others;
      // Nobody finds containers of an engine that does not answer. The next turn says so, and so does `doctor`.
      const marks = await marksOf(engine).catch(() => new Set<string>());
      const containers = [...marks].flatMap((mark) => {
        const starter = starterOf(mark);
        if (starter?.place !== place || processes.status(starter.process) !== 'dead') return [];
        return [containerProcess({ engine, mark, part: null, client: starter.process })];
      });
      // A program in a container is also a process of this machine.
      return [...containers, ...others.filter((one) => !marks.has(identityOfLocal(one)?.mark ?? ''))];
    },
  };
}

/** Containers end when the machine is shut down, and are not started again. */
function isOver(processes: HostProcesses, { client }: ContainerIdentity): boolean {
  return processes.identify(process.pid)?.boot !== client.boot;
}
