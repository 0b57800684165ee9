import type { Changes, Keep, Kept } from '../core/changes.ts';
import type { SandboxProcess } from '../core/process.ts';
import type { Directories, Files } from '../core/public/files.ts';

export type { SandboxProcess };

/** Makes and reopens sandboxes, and ends what was started in them. */
export interface Sandboxes {
  /** The place that these sandboxes are tied to. Only workers of its place run a conversation. */
  readonly place: string;
  /** The path of the data home of this place, for people. */
  readonly home: string;
  /**
   * Opens the sandbox `id` and makes what is missing; any number of times, by any number of processes. Existing directories and links are
   * kept. `cwd`: a directory that the caller named instead of the sandbox's own. Throws `refused` if it is missing.
   */
  open(id: string, options: { cwd: string | null }): Promise<OpenSandbox>;
  /**
   * A sandbox to probe an agent outside of any conversation, with the programs and the home that conversations have. Its directories are
   * empty, and are deleted with everything in them when it is disposed. `cwd`: work in this directory instead, which is kept. Throws as
   * `open`.
   */
  probe(options?: { cwd: string | null }): Promise<OpenSandbox & AsyncDisposable>;
  /** Whether a process that was started in a sandbox runs. `unknown`: it cannot be seen from here. */
  status(process: SandboxProcess): Promise<'alive' | 'dead' | 'unknown'>;
  /**
   * Kills a process that was started in a sandbox, and everything that it has started, even if it is dead itself. Waits until they are gone.
   * Any worker may call this, any number of times, also after a crash of the one that started it. `unknown`: it could not be identified or
   * reached, and nothing was killed.
   */
  end(process: SandboxProcess): Promise<'ended' | 'unknown'>;
  /**
   * Programs in these sandboxes whose starter, a process of ours, is provably dead, also if it could not record them. Only those that can be
   * found. Slow: for rare use.
   */
  orphans(): Promise<readonly SandboxProcess[]>;
  /** The folder of all sandboxes, and the ids of those that have files there. Creates nothing. */
  list(): Promise<{ readonly root: string; readonly ids: readonly string[] }>;
  /** The real path of the sandbox `id`, links above it resolved; null: there is none. Creates nothing. */
  find(id: string): Promise<string | null>;
  /**
   * What differs in its directory (or in `cwd`) from the last commit of the git repository that it is in, bounded in size and time. Runs
   * nothing that the repository names. Throws `not_found` when there is no repository, `refused`, and `timed_out`.
   */
  changes(id: string, options: { cwd: string | null }): Promise<Changes>;
  /**
   * Files in its directory (or in `cwd`) whose paths contain `match`, the best first, bounded in number, depth and time. Links are
   * neither listed nor followed. Creates nothing: a directory that was not made yet has none. Throws `not_found` when `cwd` is gone.
   */
  files(id: string, options: { cwd: string | null; match: string }): Promise<Files>;
  /**
   * Deletes the sandbox `id` with everything in it; may be repeated. Links are removed and never followed. The caller has made sure that
   * nobody needs it. Throws `refused` if a part of it cannot be deleted, or if a worktree has uncommitted changes, unless `discard`.
   */
  remove(id: string, options?: { readonly discard?: boolean }): Promise<void>;
  /**
   * The directories in `path` (null: the first root) that a person may choose for a conversation, below the roots of the settings. `path`
   * is absolute or begins with "~". Left out: the files are not on the machine of this process. Throws `refused`, also for a path outside.
   */
  directories?(options: { path: string | null; hidden: boolean }): Promise<Directories>;
  /** Left out: no conversation works in a worktree here. */
  readonly worktrees?: Worktrees;
  /**
   * Stops what keeps the sandbox `id` running, so that it costs nothing until it is opened again; its files stay. May be repeated. The
   * caller has ended the programs in it. Left out: there is nothing to stop.
   */
  rest?(id: string): Promise<void>;
  /**
   * The directory that a caller wants to work in. A relative path starts at `base`, a directory of the machine of this process; left out:
   * its working directory. Sandboxes on another machine refuse a relative path. Throws `refused` when there is no such directory. Creates
   * nothing.
   */
  checkDirectory(path: string, base?: string): Promise<NamedDirectory>;
}

export interface NamedDirectory {
  /** The whole path, links kept: the same name means the same, also after a link was changed. */
  readonly path: string;
  /** Links resolved. */
  readonly real: string;
  /** What it counts to in a list: in a linked worktree the same directory of its repository, otherwise `real`. */
  readonly project: string;
}

/**
 * Sandboxes whose working directory is a worktree of the git repository that `cwd` is in, on a branch of its own: those whose id says so
 * (`isWorktree`). `open` makes it, `changes` compares it, `remove` deletes it. Git runs without the settings and hooks of the repository.
 */
export interface Worktrees {
  /** Whether a conversation with a directory in a repository gets one without asking. */
  readonly byDefault: boolean;
  /** Throws `refused` when there can be no worktree for this directory. Creates nothing. */
  check(cwd: string): Promise<void>;
  /** How many files are changed and not committed: their content is nowhere else. 0 also if the worktree was not made yet. */
  unsaved(id: string): Promise<number>;
  /** Throws `conflict` when there is nothing to keep, and `refused` when git cannot do it without a person. */
  keep(id: string, keep: Keep): Promise<Kept>;
  /** Throws away what is not committed. */
  discard(id: string): Promise<void>;
}

/**
 * An open sandbox: the agent's files, programs and processes. Adapters use these and nothing of the machine that we run on. All
 * paths are paths in the sandbox.
 */
export interface OpenSandbox {
  readonly id: string;
  /** The owner of the conversation that it was opened for. Left out: it was opened to probe an agent. */
  readonly owner?: string;
  /** Sandboxes with the same `host` have the same programs, so the result of a probe in one holds in the others. */
  readonly host: string;
  /** The working directory, links resolved. */
  readonly work: string;
  /** A directory for the agents' own files, outside of the working directory. */
  readonly state: string;
  /** The home directory of programs in it: the person's, or one of its own. */
  readonly home: string;
  /** Whether `home` is its own. Left out: it is the person's. */
  readonly ownHome?: true;
  /** What every program in it has in its environment, before what `spawn` adds. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * A folder, by its absolute path. The path itself is trusted: it comes from the settings or from us, and no agent has made a part of it.
   * Its links are resolved once. If it does not exist yet, the first file that is written makes it. Throws `refused` if it is not visible in
   * this sandbox.
   */
  folder(root: string): Promise<Folder>;
  /** An absolute path with its links resolved, as far as it exists. */
  realPath(path: string): Promise<string>;
  /** The absolute path of a program: one by its absolute path, or the first by its name on `env.PATH`. Null: there is none. */
  find(program: string): Promise<string | null>;
  /** Starts a program in it, in a process group of its own. Throws `agent_unavailable` when it cannot be started. */
  spawn(command: readonly string[], options: SpawnOptions): Promise<Child>;
}

export interface SpawnOptions {
  /** Added to the sandbox's environment; the rest of our own environment never reaches an agent. */
  readonly env: Readonly<Record<string, string>>;
  /** An absolute path; left out: the working directory. */
  readonly cwd?: string;
  /** Another process in the same sandbox. When that ends, this program is ended, too. Left out: none. */
  readonly partOf?: SandboxProcess;
}

export interface Child {
  readonly identity: SandboxProcess;
  readonly stdin: ByteSink;
  /** The caller must read both outputs to their end: a full pipe blocks the program. */
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  /**
   * Resolves once, when the process has ended and its output was read to the end, or a moment later if a program that it left running
   * keeps the output open. Never rejects.
   */
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  /** False as soon as its end can be seen. On another machine, that is when its exit is reported. */
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

/**
 * A folder in a sandbox. Nothing in it is trusted, because an agent may have made it: whatever changes there at the same time, no method
 * follows a link, waits for a pipe, or leaves the folder.
 *
 * Paths are relative, with "/" between their parts and without "." and ".."; the empty path is the folder itself. All methods throw
 * `refused` for other paths, for a path through a link, and for something of the wrong kind; `storage_full`, `storage_readonly`, and
 * `refused` with the reason for all other faults. A missing file is not a fault.
 */
export interface Folder {
  /** Its absolute path in the sandbox, links resolved. */
  readonly path: string;
  /** Null: there is nothing of that name. A link is described, not followed. */
  stat(path: string): Promise<FileStat | null>;
  /** Reads a part of a file, with its state at that moment. Null: there is none. */
  read(path: string, range: Range): Promise<FileRead | null>;
  /** What is in a folder, in no order. Null: there is no such folder. Throws `too_large` for more than 100,000 entries. */
  list(path: string): Promise<Entry[] | null>;
  /** Whether files can be written in a folder. Null: there is no such folder. */
  space(path: string): Promise<Space | null>;
  /**
   * Writes a new file, all of it or nothing, and the folders above it. An existing file is never changed: `same`: it has this content;
   * `exists`: it has another. If several write it at once, one gets `written`.
   */
  put(path: string, content: string | Uint8Array): Promise<'written' | 'same' | 'exists'>;
  /** Replaces a file, or writes a new one: readers see the old content or the new. Keeps the permissions of the old one. */
  replace(path: string, content: string | Uint8Array, options?: { readonly mode?: number }): Promise<void>;
  /** Adds to the end of a file. False: there is none, and none is made. */
  append(path: string, content: string | Uint8Array): Promise<boolean>;
  /** Removes a file, or a link itself. Does nothing if there is none. Throws `refused` for a folder. */
  remove(path: string): Promise<void>;
  /**
   * Calls `changed` soon after a file has changed, appeared or disappeared, until it is stopped. Several changes may be one call. Does not
   * keep our process alive, and never throws because of the file.
   */
  watch(path: string, changed: () => void): Promise<Watch>;
}

export interface FileStat {
  /** `other`: a pipe, a socket, a device. */
  readonly kind: 'file' | 'folder' | 'link' | 'other';
  readonly size: number;
  /** In milliseconds since 1970. */
  readonly modifiedAt: number;
  /** Another file of the same name has another id; null: not known. */
  readonly id: string | null;
  /** While this is the same, it is the same file with the same content. */
  readonly version: string;
}

export interface Range {
  /** The first byte; left out: 0. */
  readonly from?: number;
  /** At most this many bytes. Required, so that every read is limited. */
  readonly most: number;
}

export interface FileRead extends FileStat {
  /** If these are fewer than were asked for, the file ends there. */
  readonly bytes: Uint8Array;
}

export interface Entry {
  readonly name: string;
  readonly kind: FileStat['kind'];
}

export interface Space {
  readonly writable: boolean;
  /** How many bytes can still be written; null: not known. */
  readonly freeBytes: number | null;
}

export interface Watch {
  stop(): void;
}
