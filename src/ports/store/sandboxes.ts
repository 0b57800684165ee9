import type { DiskUse, Sandbox, SandboxUse, SetupResult } from '../../core/sandbox/sandbox.ts';
import type { SandboxesDiskUse } from '../engine/sandboxes.ts';
import type { WorkerInfo } from './leases.ts';

/**
 * The sandboxes of owners. Any process finds them again. One process has a sandbox alone while it sets it up or removes it. The holder of
 * the lease of a conversation uses its sandbox.
 */
export interface SandboxStore {
  /** Stores the name of a sandbox. Does nothing if it is stored already; `conflict` when another one has this name. */
  nameSandbox(owner: string, sandbox: NewSandbox & { readonly name: string }): Promise<Sandbox>;
  /** By our id, or by its name. Null: none of this owner. An id wins over a name that looks the same. */
  findSandbox(owner: string, idOrName: string): Promise<Sandbox | null>;
  /** Newest first, a page; `before` is the id of the last one of the previous page. */
  listSandboxes(owner: string, page: { limit: number; before?: string }): Promise<Sandbox[]>;
  /** Sandboxes of all owners in this place that were opened, and not used since `before`; oldest first, a page. */
  idleSandboxes(request: IdleRequest): Promise<{ readonly sandboxes: Sandbox[]; readonly next: number | null }>;
  /** The conversations that work in it, most recently changed first. Empty: none, or there is no such sandbox of this owner. */
  sandboxUses(owner: string, id: string, limit: number): Promise<SandboxUse[]>;
  /**
   * A conversation of any owner in this place whose directory is `path` or lies below it, whichever sandbox it has: one that is held or has
   * an open turn, else one of another owner, else any. Null: there is none. For rare use: looks at every conversation.
   */
  worksBelow(owner: string, below: { readonly place: string; readonly path: string }): Promise<DirectoryUse | null>;
  /**
   * Records that a worker, which holds the lease of a conversation in it, has opened it: makes it if it is missing, and ends its rest. May be
   * repeated. `alone`: another worker has it alone, and nothing was changed.
   */
  openSandbox(owner: string, sandbox: NewSandbox, worker: WorkerInfo): Promise<OpenedSandbox | AloneInSandbox>;
  /**
   * Takes it for this worker alone, for `leaseMs`; a repeat prolongs that. `unused`: throws `conflict` if a conversation in it is held or has
   * an open turn, an unfinished task works in one, or somebody has it as `shared`. `shared`: uses it together with others. `instead`: takes it
   * from this worker, which is dead. Null: it was taken. Otherwise returns the worker that has it alone. Throws `not_found`.
   */
  holdSandbox(owner: string, id: string, hold: SandboxHold): Promise<AloneInSandbox | null>;
  /** Gives it back. Does nothing when another worker has it. */
  releaseSandbox(owner: string, id: string, worker: string): Promise<void>;
  /** Throws `not_found`. */
  changeSandbox(owner: string, id: string, change: SandboxChange): Promise<Sandbox>;
  /**
   * Records that it was put to rest, or removed with its files. The conversations in it get an event: at most 100, those that changed last. A
   * removed sandbox is deleted from the store. If a conversation still needs it, only what was stored about its files is deleted.
   */
  leaveSandbox(owner: string, id: string, how: 'rested' | 'destroyed', reason: string): Promise<void>;
  /** How many sandboxes the owner has, and how many bytes they had together when they were last measured. */
  diskUse(owner: string): Promise<SandboxesDiskUse>;
  /** The size of our copies of transcripts of all conversations in it. */
  copiedBytes(owner: string, id: string): Promise<number>;
}

export interface NewSandbox {
  readonly id: string;
  readonly place: string;
}

export interface DirectoryUse {
  readonly owner: string;
  readonly conversation: string;
  readonly key: string | null;
  /** It is held, or has an open turn. */
  readonly busy: boolean;
}

export interface OpenedSandbox {
  /** `same`: this worker had opened it before. */
  readonly opened: 'created' | 'reopened' | 'same';
  readonly sandbox: Sandbox;
}

/** The worker that has it alone. */
export interface AloneInSandbox {
  readonly alone: WorkerInfo;
}

export interface SandboxHold {
  readonly worker: WorkerInfo;
  readonly leaseMs: number;
  readonly unused?: boolean;
  readonly shared?: boolean;
  readonly instead?: string;
}

export interface SandboxChange {
  readonly setup?: readonly SetupResult[];
  readonly disk?: DiskUse;
}

export interface IdleRequest {
  readonly place: string;
  readonly before: number;
  /** Only those that do not rest. */
  readonly awake: boolean;
  readonly limit: number;
  /** `next` of the previous page; left out: the first. */
  readonly after?: number;
}
