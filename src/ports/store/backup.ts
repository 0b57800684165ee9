/** Copies of the whole data: of all owners, with keys (their hashes) and transcripts, without settings, tokens and programs. */

export interface BackupOptions {
  /** Called now and then. */
  readonly onProgress?: (progress: BackupProgress) => void;
  /** When it aborts, the work stops, leaves nothing behind, and throws `cancelled`. */
  readonly signal?: AbortSignal;
}

export interface BackupRequest extends BackupOptions {
  readonly file: string;
  /** Replace the file if it exists. */
  readonly force: boolean;
  readonly sandboxes: boolean;
  /** Called with what a person should know about a backup that was made. */
  readonly onNote?: (note: string) => void;
}

export interface RestoreRequest extends BackupOptions {
  readonly file: string;
  /** Move the conversations of other data homes to this one, because the home that the backup is from is gone. */
  readonly moveHere: boolean;
  /** Restore a backup in which chains of events are broken. */
  readonly force: boolean;
}

export interface BackupProgress {
  /** Copying counts bytes (an estimate), checking counts conversations. */
  readonly step: 'copying' | 'checking' | 'sandboxes';
  readonly done: number;
  readonly total: number;
}

/** What a backup contains, as read back from it. */
export interface BackupContents {
  readonly bytes: number;
  readonly schema: number;
  readonly conversations: number;
  readonly turns: number;
  readonly events: number;
  /** When something was last written, in milliseconds; null: it is empty. */
  readonly lastAt: number | null;
  /** Conversations whose chain of events was broken before the copy was made. Everything else in the file is intact. */
  readonly broken: readonly { readonly conversation: string; readonly event: number }[];
}

export interface BackupMade extends BackupContents {
  readonly file: string;
  /** Whether the sandboxes are in it. */
  readonly sandboxes: boolean;
}

export interface Restored extends BackupContents {
  /** The backup that was read, and the database that it was restored to. */
  readonly from: string;
  readonly to: string;
  /** The new paths of what was there before. Nothing is deleted. */
  readonly kept: readonly string[];
  readonly sandboxes: boolean;
  /** Conversations that belong to another data home: they can be read and forked here, but not continued. */
  readonly elsewhere: readonly { readonly home: string; readonly conversations: number }[];
  /** How many conversations were moved to this data home. */
  readonly moved: number;
}

/** A copy of everything to a store of another kind: from SQLite to PostgreSQL, or back. */
export interface StoreCopyRequest extends BackupOptions {
  /** `sqlite:FILE`, a data home, or `postgres://USER@HOST/DATABASE`. */
  readonly from: string;
  readonly to: string;
}

export interface StoreCopied extends Pick<BackupContents, 'conversations' | 'turns' | 'events' | 'broken'> {
  /** The two stores, without a password. */
  readonly from: string;
  readonly to: string;
  /**
   * True: everything was copied and verified, and the target can be used. False: the source is in use. The target has what was stored when
   * the copy began, and cannot be used yet.
   */
  readonly complete: boolean;
  /** Conversations by place: only a server of that place can continue them. */
  readonly places: readonly { readonly place: string; readonly name: string; readonly conversations: number }[];
}

export interface StoreReopened {
  readonly store: string;
  /** The store that its data was copied to, and that had been used instead; null: there was none. */
  readonly successor: string | null;
}
