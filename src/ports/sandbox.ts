import type { ProcessIdentity } from '../core/process.ts';

/** Makes and reopens the places where agents act. */
export interface Sandboxes {
  /** The place that these sandboxes are tied to; a conversation is only run by workers of its place. */
  readonly place: string;
  /** The path of the data home that this place is, for people. */
  readonly home: string;
  /**
   * Opens the sandbox `id` and makes what is missing; any number of times, by any number of processes. Existing directories
   * and links are kept. `cwd` is a directory that the caller named instead of the sandbox's own; a missing one is `refused`.
   */
  open(id: string, options: { cwd: string | null }): Promise<OpenSandbox>;
  /** The real path of the sandbox `id`, links above it resolved; null: there is none. Creates nothing. */
  find(id: string): Promise<string | null>;
  /**
   * Deletes the sandbox `id` with everything in it; may be repeated. Links are removed and never followed. Whoever calls has made
   * sure that nobody needs it. Throws `refused` when a part of it cannot be deleted.
   */
  remove(id: string): Promise<void>;
  /**
   * The real path, links resolved, of a directory that a caller wants to work in. A relative path starts at this process's
   * working directory. Throws `refused` when there is no such directory. Creates nothing.
   */
  checkDirectory(path: string): Promise<string>;
}

/** An open sandbox. */
export interface OpenSandbox {
  readonly id: string;
  /** The working directory, its links resolved. */
  readonly work: string;
  /** Where an agent's own files may live, apart from the work. */
  readonly state: string;
  /** Starts a program in it, in a process group of its own. Throws `agent_unavailable` when it cannot be started. */
  spawn(command: readonly string[], options: SpawnOptions): Promise<Child>;
}

export interface SpawnOptions {
  /** Added to the allowlisted environment; the rest of our own environment never reaches an agent. */
  readonly env: Readonly<Record<string, string>>;
}

export interface Child {
  readonly identity: ProcessIdentity;
  readonly stdin: ByteSink;
  /** Whoever spawned it must read both outputs to their end: a full pipe stops the program. */
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  /**
   * Resolves once, when the process has ended and its output was read to the end, or a moment later when something it left
   * behind keeps the output open. Never rejects.
   */
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  readonly alive: boolean;
  /** Signals the whole process group. Does nothing once it has ended. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
}

/** The input of a program. Bytes for a program that has ended are dropped: see `exited`. */
export interface ByteSink {
  /** False: the program reads slower than we write. `taken` is called when the program has read these, or never will. */
  write(bytes: string | Uint8Array, taken?: () => void): boolean;
  end(): unknown;
}
