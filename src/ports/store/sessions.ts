import type { CheckedRange } from '../../core/input/arguments.ts';
import type { Omissions, Receipt } from '../../core/restore/receipt.ts';
import type { Session } from '../../core/restore/session.ts';

/** The lineage: the agents' sessions that a conversation has used, and how each was restored. */
export interface SessionStore {
  /** The lineage, most recently used first. */
  sessions(owner: string, conversation: string, filter?: { agent?: string; limit?: number }): Promise<Session[]>;
  /**
   * Whether a native session belongs to another conversation, of any owner: to the one that can use it, otherwise to the one that used it
   * last (R1). Throws `not_found`.
   */
  sessionIsElsewhere(owner: string, conversation: string, native: NativeSession): Promise<boolean>;
  /** By the agent's id, in any of this owner's conversations; most recently used first. */
  findSessions(owner: string, id: string): Promise<Session[]>;
  /** Our copy of a session's own transcript file, byte for byte; null: there is none. */
  transcript(owner: string, conversation: string, ref: string): Promise<Uint8Array | null>;
  /** Rising by turn and attempt. `turn`: only of that one. */
  receipts(owner: string, conversation: string, filter?: { turn?: number }): Promise<Receipt[]>;
  /** All receipts of a page of turns, rising by turn and attempt. `limit` counts the turns that have any. */
  restores(owner: string, conversation: string, range: CheckedRange): Promise<PlacedReceipt[]>;
}

/** A receipt with the number of its turn; of a warm-up, the last turn before it (0: none). */
export interface PlacedReceipt {
  readonly n: number;
  readonly receipt: Receipt;
}

/** A session by its storage and its id there. */
export interface NativeSession {
  readonly storage: string;
  readonly id: string;
}

export interface NewSession
  extends Pick<
    Session,
    'ref' | 'id' | 'agent' | 'origin' | 'parent' | 'watermark' | 'dropped' | 'state' | 'position' | 'process'
  > {
  /** Another agent with the same storage has the same sessions. Left out: the agent's name. */
  readonly storage?: string;
  /** Its history before the adoption could not be read. Left out: it was read, or there was none. */
  readonly unread?: boolean;
  /** Left out: nothing. */
  readonly omitted?: Omissions;
  /** Left out: 0. */
  readonly condensedTo?: number;
}

export interface SessionChange
  extends Partial<
    Pick<
      Session,
      'state' | 'watermark' | 'dropped' | 'omitted' | 'condensedTo' | 'position' | 'process' | 'memo' | 'context'
    >
  > {
  /** More of the agent's transcript file. `from` is the number of bytes mirrored already, or 0 to start over; else `invalid`. */
  readonly mirror?: { readonly from: number; readonly bytes: Uint8Array };
}
