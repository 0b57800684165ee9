import { setTimeout as sleep } from 'node:timers/promises';
import type { FileRead, FileStat, Folder, OpenSandbox, Range, SandboxProcess, Watch } from '../../ports/sandbox.ts';
import { spawnBridged } from './bridged-child.ts';
import type { MachineBridge } from './machine-bridge.ts';

/** A process of a machine, as it is stored: the machine, and how the process is known inside. */
export interface MachineProcess {
  readonly machine: string;
  readonly process: SandboxProcess;
}

/** Null: it is of another kind, or nobody can read it. */
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
    folder: async (root) => new BridgedFolder(bridge, (await bridge.call('folder', { root })).head),
    realPath: async (path) => (await bridge.call('realPath', { path })).head,
    find: async (program) => (await bridge.call('find', { program })).head,
    spawn(command, { cwd = known.work, env, partOf }) {
      const whole = partOf && machineProcessOf(kind, partOf)?.process;
      return spawnBridged(bridge, command, { cwd, env, ...(whole && { partOf: whole }) }, identityOf);
    },
  };
}

const WATCH_AGAIN_MS = 500;

class BridgedFolder implements Folder {
  readonly path: string;
  readonly #bridge: MachineBridge;

  constructor(bridge: MachineBridge, path: string) {
    this.#bridge = bridge;
    this.path = path;
  }

  async stat(path: string): Promise<FileStat | null> {
    return (await this.#bridge.call('stat', this.#at(path))).head;
  }

  async read(path: string, range: Range): Promise<FileRead | null> {
    const { head, bytes } = await this.#bridge.call('read', { ...this.#at(path), ...range });
    return head && { ...head, bytes };
  }

  async list(path: string) {
    return (await this.#bridge.call('list', this.#at(path))).head;
  }

  async room(path: string) {
    return (await this.#bridge.call('room', this.#at(path))).head;
  }

  async put(path: string, content: string | Uint8Array) {
    return (await this.#bridge.call('put', this.#at(path), { bytes: content })).head;
  }

  async replace(path: string, content: string | Uint8Array, options: { readonly mode?: number } = {}): Promise<void> {
    await this.#bridge.call('replace', { ...this.#at(path), ...options }, { bytes: content });
  }

  async append(path: string, content: string | Uint8Array): Promise<boolean> {
    return (await this.#bridge.call('append', this.#at(path), { bytes: content, repeat: false })).head;
  }

  async remove(path: string): Promise<void> {
    await this.#bridge.call('remove', this.#at(path));
  }

  async watch(path: string, changed: () => void): Promise<Watch> {
    const at = this.#at(path);
    const stopped = new AbortController();
    const first = await this.#bridge.call('watch', at);
    void this.#watching(at, first.head, changed, stopped.signal);
    return { stop: () => stopped.abort() };
  }

  async #watching(at: { root: string; path: string }, first: string, changed: () => void, signal: AbortSignal) {
    for (let before = first; !signal.aborted; ) {
      try {
        const { head } = await this.#bridge.call('watch', { ...at, before }, { wake: false, unref: true, signal });
        if (head !== before && !signal.aborted) changed();
        before = head;
      } catch {
        // It cannot be reached, or rests: nothing changes there, or we see it later.
        await sleep(WATCH_AGAIN_MS, undefined, { ref: false });
      }
    }
  }

  #at(path: string) {
    return { root: this.path, path };
  }
}
