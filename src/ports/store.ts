import type { Census } from './store/census.ts';
import type { ConversationStore } from './store/conversations.ts';
import type { HistoryStore } from './store/history.ts';
import type { KeyStore } from './store/keys.ts';
import type { LeaseStore } from './store/leases.ts';
import type { PermissionStore } from './store/permissions.ts';
import type { SessionStore } from './store/sessions.ts';
import type { TaskStore } from './store/tasks.ts';
import type { TurnStore } from './store/turns.ts';
import type { UsageStore } from './store/usage.ts';
import type { WriteStore } from './store/writes.ts';

/**
 * Where conversations live: one store, told by subject in `store/`. Every verb takes the owner it acts for; another owner's
 * things are `not_found`. Every verb is one transaction, durable when its promise resolves (R3). Besides what is said at a verb,
 * each may throw `storage_full`, `storage_readonly`, `storage_busy` or `closed`, and then has changed nothing. Every page ends
 * early when what it holds is large: one that is short is not the last, only an empty one is, unless the verb says more.
 */
export interface Store
  extends ConversationStore,
    TurnStore,
    LeaseStore,
    WriteStore,
    HistoryStore,
    SessionStore,
    PermissionStore,
    UsageStore,
    KeyStore {
  /** The tasks that turns are had for. */
  readonly tasks: TaskStore;
  /** What is on record, of all owners: for whoever looks for what was left over. */
  census(): Promise<Census>;
  /**
   * Calls back when something may have changed, in this process or another: with the ids of conversations and tasks that
   * have new events, or with null when any may have. Only a hint to read again: it may come late, twice or for nothing, and
   * correct callers also work without it. `own`: of those that moved in this process, the ones in which nothing has happened but
   * what the holder of the lease has written, who need not be told.
   */
  listen(listener: (moved: readonly string[] | null, own?: ReadonlySet<string>) => void): () => void;
  close(): Promise<void>;
}
