import { identityOfLocal, type ProcessIdentity } from '../../../core/process.ts';
import type { Folder, OpenSandbox, Range, Sandboxes, SandboxProcess, SpawnOptions } from '../../../ports/sandbox.ts';
import { localFolder } from '../../shared/local-folder.ts';
import { type Programs, waited } from './programs.ts';

export interface BridgeParts {
  /** The sandboxes of the machine that the bridge runs in. */
  readonly sandboxes: Sandboxes;
  readonly sandbox: OpenSandbox;
  readonly programs: Programs;
  /** The process of the bridge. */
  readonly self: Pick<ProcessIdentity, 'boot' | 'namespace'>;
  /** Ends the bridge with everything that it has started. */
  readonly leave: () => void;
}

export interface Asked {
  readonly bytes: Uint8Array;
  /** Aborted when the client has closed the connection. */
  readonly gone: AbortSignal;
}

/** `head` is sent as JSON. */
export interface Answer<Head> {
  readonly head: Head;
  readonly bytes?: Uint8Array;
}

/** A file in a folder. `root` has no links: they were resolved when the folder was opened. */
interface At {
  readonly root: string;
  readonly path: string;
}

interface OutputOf {
  readonly key: string;
  readonly name: 'stdout' | 'stderr';
  readonly from: number;
}

const answer = <Head>(head: Head): Answer<Head> => ({ head });

export type Operations = ReturnType<typeof operationsOf>;

/** All operations of the bridge, by name. */
export function operationsOf(parts: BridgeParts) {
  return { ...sandboxOperations(parts), ...fileOperations(), ...programOperations(parts) };
}

function sandboxOperations({ sandboxes, sandbox, self, leave }: BridgeParts) {
  const probes = new Map<string, AsyncDisposable>();
  /** All processes that are stored for a rented machine ran in it. One of another boot or pid namespace ended when the machine rested. */
  const hasEnded = (process: SandboxProcess) => {
    const identity = identityOfLocal(process);
    return identity !== null && (identity.boot !== self.boot || identity.namespace !== self.namespace);
  };
  const placeOf = ({ work, state, home, env }: OpenSandbox) => ({ work, state, home, env });
  return {
    hello: async () => answer(null),
    /** Sent by a client with another version of the bridge, which then starts its own. */
    async leave() {
      setImmediate(leave);
      return answer(null);
    },
    open: async ({ id, cwd }: { id: string; cwd: string | null }) => answer(placeOf(await sandboxes.open(id, { cwd }))),
    async probe({ cwd }: { cwd: string | null }) {
      const probe = await sandboxes.probe({ cwd });
      probes.set(probe.state, probe);
      return answer(placeOf(probe));
    },
    async endProbe({ state }: { state: string }) {
      await probes.get(state)?.[Symbol.asyncDispose]();
      probes.delete(state);
      return answer(null);
    },
    changes: async ({ id }: { id: string }) => answer(await sandboxes.changes(id, { cwd: null })),
    files: async ({ id, match }: { id: string; match: string }) =>
      answer(await sandboxes.files(id, { cwd: null, match })),
    folder: async ({ root }: { root: string }) => answer((await sandbox.folder(root)).path),
    realPath: async ({ path }: { path: string }) => answer(await sandbox.realPath(path)),
    find: async ({ program }: { program: string }) => answer(await sandbox.find(program)),
    status: async ({ process }: { process: SandboxProcess }) =>
      answer(hasEnded(process) ? 'dead' : await sandboxes.status(process)),
    end: async ({ process }: { process: SandboxProcess }) =>
      answer(hasEnded(process) ? 'ended' : await sandboxes.end(process)),
  };
}

function fileOperations() {
  return {
    stat: async ({ root, path }: At) => answer(await localFolder(root).stat(path)),
    async read({ root, path, ...range }: At & Range) {
      const read = await localFolder(root).read(path, range);
      if (read === null) return answer(null);
      const { bytes, ...stat } = read;
      return { head: stat, bytes };
    },
    list: async ({ root, path }: At) => answer(await localFolder(root).list(path)),
    space: async ({ root, path }: At) => answer(await localFolder(root).space(path)),
    put: async ({ root, path }: At, { bytes }: Asked) => answer(await localFolder(root).put(path, bytes)),
    async replace({ root, path, mode }: At & { mode?: number }, { bytes }: Asked) {
      await localFolder(root).replace(path, bytes, mode === undefined ? {} : { mode });
      return answer(null);
    },
    append: async ({ root, path }: At, { bytes }: Asked) => answer(await localFolder(root).append(path, bytes)),
    async remove({ root, path }: At) {
      await localFolder(root).remove(path);
      return answer(null);
    },
    /** Waits until the version of the file is not `before` any more. Left out: returns the version at once. */
    async watch({ root, path, before }: At & { before?: string }, { gone }: Asked) {
      const folder = localFolder(root);
      const changed = Promise.withResolvers<void>();
      const watch = await folder.watch(path, changed.resolve);
      try {
        const now = await versionOf(folder, path);
        if (before === undefined || now !== before) return answer(now);
        await waited(changed.promise, gone);
        return answer(await versionOf(folder, path));
      } finally {
        watch.stop();
      }
    },
  };
}

/** Changes with the file, and with the reason why it cannot be read. Never throws. */
async function versionOf(folder: Folder, path: string): Promise<string> {
  try {
    return (await folder.stat(path))?.version ?? '';
  } catch (error) {
    return String(error);
  }
}

function programOperations({ programs }: BridgeParts) {
  return {
    spawn: async ({ key, command, ...options }: SpawnOptions & { key: string; command: readonly string[] }) =>
      answer(await programs.start(key, command, options)),
    async output({ key, name, from }: OutputOf, { gone }: Asked) {
      const program = await programs.get(key);
      const { bytes, isEnd } = await program.asked(() => program.output(name, from, gone));
      return { head: { isEnd }, bytes };
    },
    async input({ key, from, isEnd }: { key: string; from: number; isEnd: boolean }, { bytes, gone }: Asked) {
      const program = await programs.get(key);
      return answer(await program.asked(() => program.input(from, bytes, isEnd, gone)));
    },
    async exit({ key }: { key: string }, { gone }: Asked) {
      const program = await programs.get(key);
      return answer(await program.asked(() => program.exit(gone)));
    },
    async kill({ key, signal }: { key: string; signal: 'SIGTERM' | 'SIGKILL' }) {
      (await programs.get(key)).child.kill(signal);
      return answer(null);
    },
  };
}
