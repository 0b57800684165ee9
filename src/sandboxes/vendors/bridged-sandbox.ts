import { setTimeout as sleep } from 'node:timers/promises';
import type { Folder, OpenSandbox, SandboxProcess } from '../../ports/sandbox.ts';
import { spawnBridged } from './bridged-child.ts';
import type { MachineBridge } from './machine-bridge.ts';

/** A process of a machine, as it is stored: the machine, and the identity of the process inside. */
export interface MachineProcess {
  readonly machine: string;
  readonly process: SandboxProcess;
}

/** Null: it is of another kind, or not readable. */
export function machineProcessOf(kind: string, stored: SandboxProcess): MachineProcess | null {
  if (stored.kind !== kind) return null;
  try {
    const { machine, process } = JSON.parse(stored.id) as MachineProcess;
    return typeof machine === 'string' && typeof process?.id === 'string' ? { machine, process } : null;
  } catch {
    return null;
  }
}

export interface BridgedSettings extends Pick<OpenSandbox, 'id' | 'host' | 'work' | 'state' | 'home' | 'env'> {
  readonly kind: string;
  readonly bridge: MachineBridge;
}

/** A sandbox in a rented machine. */
export function bridgedSandbox({ kind, bridge, ...known }: BridgedSettings): OpenSandbox {
  const identityOf = (process: SandboxProcess): SandboxProcess => {
    const inside: MachineProcess = { machine: bridge.name, process };
    return { kind, id: JSON.stringify(inside), label: `${process.label} of ${bridge.name}` };
  };
  return {
    ...known,
    ownHome: true,
    folder: async (root) => bridgedFolder(bridge, (await bridge.call('folder', { root })).head),
    realPath: async (path) => (await bridge.call('realPath', { path })).head,
    find: async (program) => (await bridge.call('find', { program })).head,
    spawn(command, { cwd = known.work, env, partOf }) {
      const whole = partOf && machineProcessOf(kind, partOf)?.process;
      return spawnBridged(bridge, command, { cwd, env, ...(whole && { partOf: whole }) }, identityOf);
    },
  };
}

const WATCH_AGAIN_MS = 500;

function bridgedFolder(bridge: MachineBridge, root: string): Folder {
  const at = (path: string) => ({ root, path });
  return {
    path: root,
    stat: async (path) => (await bridge.call('stat', at(path))).head,
    async read(path, range) {
      const { head, bytes } = await bridge.call('read', { ...at(path), ...range });
      return head && { ...head, bytes };
    },
    list: async (path) => (await bridge.call('list', at(path))).head,
    space: async (path) => (await bridge.call('space', at(path))).head,
    put: async (path, bytes) => (await bridge.call('put', at(path), { bytes })).head,
    async replace(path, bytes, options = {}) {
      await bridge.call('replace', { ...at(path), ...options }, { bytes });
    },
    append: async (path, bytes) => (await bridge.call('append', at(path), { bytes, repeat: false })).head,
    async remove(path) {
      await bridge.call('remove', at(path));
    },
    async watch(path, changed) {
      const stopped = new AbortController();
      const { head } = await bridge.call('watch', at(path));
      void watching(bridge, at(path), head, changed, stopped.signal);
      return { stop: () => stopped.abort() };
    },
  };
}

async function watching(
  bridge: MachineBridge,
  at: { root: string; path: string },
  first: string,
  changed: () => void,
  signal: AbortSignal,
): Promise<void> {
  for (let before = first; !signal.aborted; ) {
    try {
      const { head } = await bridge.call('watch', { ...at, before }, { wake: false, unref: true, signal });
      if (head !== before && !signal.aborted) changed();
      before = head;
    } catch {
      // The machine rests, so nothing changes there; or it cannot be reached, and we see a change later.
      await sleep(WATCH_AGAIN_MS, undefined, { ref: false });
    }
  }
}
