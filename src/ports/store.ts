import type { ApiKey, Grant } from '../core/key.ts';
import type { Loss } from '../core/loss.ts';
import type { Census, Inspection, StoreMeasure } from './store/census.ts';
import type { ConversationStore } from './store/conversations.ts';
import type { HistoryStore } from './store/history.ts';
import type { LeaseStore } from './store/leases.ts';
import type { PermissionStore } from './store/permissions.ts';
import type { SandboxStore } from './store/sandboxes.ts';
import type { SessionStore } from './store/sessions.ts';
import type { TaskStore } from './store/tasks.ts';
import type { TurnStore } from './store/turns.ts';
import type { UsageStore } from './store/usage.ts';
import type { WriteStore } from './store/writes.ts';

/**
 * Where conversations are stored. The verbs are described by subject in `store/`. A verb that reads or changes something of a user takes
 * the owner it acts for; another owner's things are `not_found`. Every verb is atomic, and durable when its promise resolves (R3). Each
 * may also throw `storage_full`, `storage_readonly`, `storage_busy` or `closed`, and then has changed nothing. After `storage_gone`, its
 * change is in a data file that is no longer in its place, and is lost unless that file is put back. A page of large values is short:
 * only an empty page is the last, unless the verb says otherwise.
 */
export interface Store
  extends ConversationStore,
    TurnStore,
    LeaseStore,
    WriteStore,
    HistoryStore,
    SessionStore,
    SandboxStore,
    PermissionStore,
    UsageStore,
    KeyStore,
    LinkStore {
  /** The tasks that turns work on. */
  readonly tasks: TaskStore;
  /**
   * True: other processes may reach the store while this one cannot, and take over when its leases end. False: it is a file of this
   * machine.
   */
  readonly isElsewhere: boolean;
  /** How a command names it (`--store`): without a password. */
  readonly address: string;
  /**
   * The id of the log, which is all stored events. It changes when events were lost or a backup was restored, because a number may then
   * stand for another event than before.
   */
  log(): Promise<string>;
  /** Stored data that was found missing when the store was opened, and that nobody has acknowledged yet; oldest first. */
  losses(): Promise<Loss[]>;
  /** A person has acknowledged the losses: they are not reported any more. */
  acknowledgeLosses(): Promise<void>;
  /** What is stored of all owners, to find what crashes left behind. */
  census(): Promise<Census>;
  /** Reads a few numbers. Costs the same at any size. */
  measure(): Promise<StoreMeasure>;
  /** Checks the whole storage for damage. Reads all of it, which takes long. */
  inspect(): Promise<Inspection>;
  /**
   * Calls back when something may have changed, in this process or another: with the ids of conversations and tasks that have new events, or
   * with null when any may have. Only a hint to read again: it may come late, twice, without a change, or not at all. `own`: the ids
   * in which only the holder of the lease, in this process, has written; the holder need not read them.
   */
  listen(listener: (moved: readonly string[] | null, own?: ReadonlySet<string>) => void): () => void;
  /**
   * Throws `storage_gone` if the data file is no longer where it was opened. Readers that wait call this now and then, because they get no
   * notification of what others write to the file in its place.
   */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Keys to the HTTP interface. */
export interface KeyStore {
  /** `conflict` when the id is taken. */
  createKey(owner: string, key: NewKey): Promise<ApiKey>;
  /** Of any owner; also one that has expired or was revoked. Null: there is none. */
  findKey(id: string): Promise<ApiKey | null>;
  /** All of the owner's, newest first. */
  keys(owner: string): Promise<ApiKey[]>;
  /** Makes the key invalid. A key that was revoked before stays as it is. Throws `not_found`. */
  revokeKey(owner: string, id: string): Promise<ApiKey>;
}

export type NewKey = Pick<ApiKey, 'id' | 'name' | 'scopes' | 'owners' | 'hash' | 'expiresAt'>;

/** One-time links that sign browsers in, at any server of the store. Of the code in a link only a hash is stored. */
export interface LinkStore {
  /** Returns when it expires, by the clock of the store. Forgets links that have expired, and the owner's oldest ones beyond `most`. */
  createLink(owner: string, link: NewLink): Promise<number>;
  /**
   * Returns what the link grants, and deletes the link: only the first caller of all processes gets it. Of any owner. Null: it is unknown,
   * was taken before, or has expired.
   */
  takeLink(hash: string): Promise<Grant | null>;
}

export interface NewLink {
  /** In hexadecimal. No two codes have the same one. */
  readonly hash: string;
  readonly scopes: Grant['scopes'];
  /** When the granted rights end at the latest; null: the link sets no limit. */
  readonly grantEnds: number | null;
  /** How long it can be taken. */
  readonly validMs: number;
  /** How many links the owner may have. */
  readonly most: number;
}
