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
 * Where conversations are stored. The verbs are described by subject in `store/`. Every verb takes the owner it acts for; another
 * owner's things are `not_found`. Every verb takes effect at once and whole, and is durable when its promise resolves (R3). Each may also throw
 * `storage_full`, `storage_readonly`, `storage_busy` or `closed`, and then has changed nothing; and `storage_gone`, and then what it
 * changed is not where anybody will look for it, unless the file is put back. A page of large values is short:
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
   * Whether a process that cannot reach it is cut off alone: others may then reach it all the same, and take over when its leases end.
   * False: it is a file of this machine.
   */
  readonly isElsewhere: boolean;
  /**
   * The id of the log: all events that are stored. It changes when events were lost or a backup was restored, because a number
   * may then stand for another event than before.
   */
  log(): Promise<string>;
  /** Stored data that is missing, as it was noticed when the store was opened, and that nobody has accepted; oldest first. */
  losses(): Promise<Loss[]>;
  /** Forgets them: somebody knows. */
  acceptLosses(): Promise<void>;
  /** What is stored of all owners, for finding what crashes left over. */
  census(): Promise<Census>;
  /** Reads a few numbers, whatever the size. */
  measure(): Promise<StoreMeasure>;
  /** Checks the whole storage for damage. Reads all of it, and takes accordingly long. */
  inspect(): Promise<Inspection>;
  /**
   * Calls back when something may have changed, in this process or another: with the ids of conversations and tasks that
   * have new events, or with null when any may have. Only a hint to read again: it may come late, twice or without a change,
   * and callers must work without it. `own`: those of the ids in which only the holder of the lease, in this process, has written;
   * the holder need not read them.
   */
  listen(listener: (moved: readonly string[] | null, own?: ReadonlySet<string>) => void): () => void;
  /**
   * Throws `storage_gone` when what is stored is no longer where it was opened. Whoever only waits for something new asks this now and
   * then: what others write there is not seen here.
   */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Keys to the HTTP interface. */
export interface KeyStore {
  /** `conflict` when the id is taken. */
  createKey(owner: string, key: NewKey): Promise<ApiKey>;
  /** Of any owner. Also one that has expired or was revoked; null: there is none. */
  findKey(id: string): Promise<ApiKey | null>;
  /** All of the owner's, newest first. */
  keys(owner: string): Promise<ApiKey[]>;
  /** From now on the key is not valid. One that was revoked before stays as it is. Throws `not_found`. */
  revokeKey(owner: string, id: string): Promise<ApiKey>;
}

export type NewKey = Pick<ApiKey, 'id' | 'name' | 'scopes' | 'owners' | 'hash' | 'expiresAt'>;

/** One-time links that sign browsers in, at any server of the store. Of the code in a link only a hash is stored. */
export interface LinkStore {
  /** Returns when it expires, by the clock of the store. Forgets links that have expired, and the owner's oldest ones beyond `most`. */
  createLink(owner: string, link: NewLink): Promise<number>;
  /**
   * Gives what it grants to the first caller of all processes; from then on there is no such link. Of any owner. Null: it is unknown,
   * was taken before, or has expired.
   */
  takeLink(hash: string): Promise<Grant | null>;
}

export interface NewLink {
  /** In hexadecimal. No two codes have the same one. */
  readonly hash: string;
  readonly scopes: Grant['scopes'];
  /** When what it grants ends at the latest; null: the link sets no limit. */
  readonly grantEnds: number | null;
  /** How long it can be taken. */
  readonly validMs: number;
  /** How many links the owner may have. */
  readonly most: number;
}
