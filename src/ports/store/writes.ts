import type { Failure } from '../../core/errors.ts';
import type { EventDraft } from '../../core/event.ts';
import type { Receipt } from '../../core/restore/receipt.ts';
import type { ToldPart } from '../../core/restore/told.ts';
import type { TurnRecord } from '../../core/turn/record.ts';
import type { Sent, TurnEnd } from '../../core/turn/turn.ts';
import type { Usage } from '../../core/turn/usage.ts';
import type { Fence } from './leases.ts';
import type { NewPermission } from './permissions.ts';
import type { NewSession, SessionChange } from './sessions.ts';

/** Everything that happens to a turn after it was accepted. It needs the lease. */
export interface WriteStore {
  /**
   * Applies all writes in one transaction, in order, and gives their events the next numbers; returns the last of them, and how many
   * turns of the conversation are open now.
   * Every write takes one counter: the first takes `counter`, the next `counter + 1`, and so on, however many events each makes. A commit
   * with a counter that was used in this epoch before is a repeat: it changes nothing and returns the same result (R5). Counters may have
   * gaps. Only the epoch decides whether the lease is held: a lease that has expired and that nobody took can still be used.
   *
   * Writes all or nothing. Throws `lease_lost` when the lease was taken or released, or its worker forgotten. Throws `conflict` when a native
   * session belongs to another conversation; when a turn has ended, was never begun, was sent before, or does not come next; when it is given
   * to a session of another agent; or when a receipt is of another turn. Throws `invalid` when a session's watermark would be beyond the head
   * (R9), or a record does not fit its turn.
   */
  commit(fence: Fence, counter: number, writes: readonly Write[]): Promise<Committed>;
}

/** `seq`: the last event of the commit. `open`: how many turns of the conversation are open; for a repeat, as of now. */
export interface Committed {
  readonly seq: number;
  readonly open: number;
  /** The agent of the turn that is open next; null: none is. Left out: the commit ended no turn or several, or it is a repeat. */
  readonly next?: string | null;
}

/** What a holder of the lease writes. Each write makes at least one event, unless there was nothing to do. */
export type Write =
  /** The oldest open turn, which is queued, begins. */
  | { readonly write: 'begin'; readonly turn: string }
  | { readonly write: 'event'; readonly event: EventDraft }
  /** A session of the agent, recorded when it is seen, or before its use if we assign its id (R1). `turn`: it is given to that turn. */
  | { readonly write: 'open-session'; readonly session: NewSession; readonly turn: string | null }
  | {
      readonly write: 'change-session';
      readonly ref: string;
      readonly change: SessionChange;
      readonly reason: string | null;
    }
  /** Stored under (turn, attempt); a later receipt for the same attempt replaces it. Its usage counts for the session, not for a turn. */
  | {
      readonly write: 'receipt';
      readonly receipt: Receipt;
      readonly turn: string | null;
      readonly session: string | null;
    }
  /**
   * From here on the prompt may have reached the agent (R6). `told`: what the session is told with it; left out: the prompt of the
   * turn, word for word.
   */
  | { readonly write: 'send'; readonly turn: string; readonly sent: Sent; readonly told?: readonly ToldPart[] }
  /** A session was told something before a turn was sent in it. It counts for the first turn that is sent in it. Makes no event of its own. */
  | { readonly write: 'told'; readonly session: string; readonly told: readonly ToldPart[] }
  /** The attempt failed and the turn is tried again: it is not sent any more, and its attempt number rises. */
  | { readonly write: 'retry'; readonly turn: string; readonly failure: Failure }
  | { readonly write: 'ask'; readonly turn: string; readonly permission: NewPermission }
  /** Does nothing when somebody has answered meanwhile: the first answer wins. */
  | { readonly write: 'deny'; readonly permission: string; readonly turn: string; readonly reason: string }
  | { readonly write: 'end'; readonly turn: string; readonly end: EndOfTurn };

/** The one end of a turn. Open permissions of it are withdrawn. */
export interface EndOfTurn {
  readonly outcome: TurnEnd;
  readonly failure: Failure | null;
  /**
   * Of a turn that was sent: it becomes the head of the history. A turn that was accepted with an empty prompt gets the record's.
   * Null: it was never sent.
   */
  readonly record: TurnRecord | null;
  /**
   * The prompt of its first attempt was not sent after all, or was not taken: the turn counts as never sent. Left out: no.
   */
  readonly unsent?: true;
  /** Our reference of the session that it counts for; null: none. */
  readonly session: string | null;
  readonly usage: Usage;
}
