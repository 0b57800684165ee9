import type { Prompt } from '../core/content.ts';
import type { Conversation, Driver, TitleSource } from '../core/conversation.ts';
import type { Failure } from '../core/errors.ts';
import type { ConversationEvent, EventDraft } from '../core/event.ts';
import type { ApiKey } from '../core/key.ts';
import type { Permission, PermissionOption } from '../core/permission.ts';
import type { ProcessIdentity } from '../core/process.ts';
import type { Receipt } from '../core/receipt.ts';
import type { TurnRecord } from '../core/record.ts';
import type { RestoreOverride } from '../core/restore-settings.ts';
import type { Session, SessionOrigin, SessionState } from '../core/session.ts';
import type { Summary } from '../core/summary.ts';
import type { Sent, Turn, TurnEnd, TurnOptions } from '../core/turn.ts';
import type { Usage } from '../core/usage.ts';
import type { Census } from './census.ts';
import type { TaskStore } from './task-store.ts';

/**
 * Where conversations live. Every verb takes the owner it acts for; another owner's things are `not_found`.
 * Every verb is one transaction, durable when its promise resolves (R3). Besides what is said at a verb, each may throw
 * `storage_full`, `storage_readonly`, `storage_busy` or `closed`, and then has changed nothing.
 */
export interface Store {
  // ── conversations ────────────────────────────────────────────────────────────────────────────────────────────────────
  /** Finds the owner's conversation by `key`, or makes it. Without a key it always makes one. */
  ensureConversation(owner: string, spec: NewConversation): Promise<{ conversation: Conversation; created: boolean }>;
  /** By our id, or by the caller's key. Null: none of this owner. An id wins over a key that looks the same. */
  findConversation(owner: string, idOrKey: string): Promise<Conversation | null>;
  /**
   * Most recently changed first. `before` is the `updatedAt` and id of the last one of the page before. This and every other
   * page ends early when what it holds is large: one that is short is not the last, only an empty one is.
   */
  listConversations(
    owner: string,
    page: { limit: number; before?: { updatedAt: number; id: string } },
  ): Promise<Conversation[]>;
  /** Sets the title unless one from a higher source is there (`titleWins`). */
  setTitle(owner: string, conversation: string, title: string, source: TitleSource): Promise<Conversation>;
  /**
   * Copies the records up to turn `n` into a new conversation, whose turn numbers go on and whose `seq` starts at 1. Without a
   * title it takes the source's. `parent.hash` is the SHA-256 of the records' JSON, each followed by a newline. Throws
   * `invalid` when `n` is beyond the head, `conflict` when the key is taken.
   */
  fork(owner: string, source: string, n: number, spec: NewConversation): Promise<Conversation>;
  /** Makes a conversation from records that ended elsewhere. `conflict` when the key is taken. All or nothing. */
  importConversation(owner: string, spec: NewConversation, history: ImportedHistory): Promise<Conversation>;

  /**
   * Forgets all that was said in it, and that it is there: from now on it is `not_found`, and its key is free. Numbers, kinds and
   * times of its events stay, and what `verify` needs; sums of usage stay, too, and tasks that worked in it, without their words.
   * Whoever holds its lease loses it. `conflict` while a turn, or such a task, is open.
   */
  eraseConversation(owner: string, conversation: string): Promise<void>;

  // ── anybody's door: needs the row's lock, not the fence ──────────────────────────────────────────────────────────────
  /** Accepts a turn (R3). The same `requestId` and body again gives the same turn; another body is a `conflict`. */
  enqueue(owner: string, turn: NewTurn): Promise<Enqueued>;
  /**
   * The same for a turn whose conversation the caller holds, and what it would do next, all in one commit: where no other turn
   * is open the turn is begun, and where it is as foreseen the writes are made, as `commit` makes them. A lease that is lost is no
   * reason to refuse the turn: it is accepted, and not begun. Throws what `enqueue` and `commit` throw; then nothing is written.
   */
  accept(owner: string, turn: NewTurn, next: Onward): Promise<Accepted>;
  /** Ends a queued turn at once; asks a running one to stop; leaves an ended one as it is. Returns the turn as it now is. */
  requestCancel(owner: string, turn: string, by: string): Promise<Turn>;
  /** The first answer wins; a later one, or one to a withdrawn question, is a `conflict`; an unknown option is `invalid`. */
  answer(owner: string, permission: string, optionId: string, by: string): Promise<Permission>;

  // ── the lease ────────────────────────────────────────────────────────────────────────────────────────────────────────
  /**
   * Takes the lease of one conversation that has an open turn (or of the one named by `conversation`, open turn or not),
   * raises its epoch, and begins the oldest queued turn. A turn of an earlier epoch that was not sent is queued again first;
   * one that was sent comes back as `unfinished` and nothing else is begun. Null: nothing to claim.
   */
  claim(request: ClaimRequest): Promise<Claim | null>;
  /**
   * Begins the next queued turn under a lease that is held. One that this lease has begun and not sent is given again, for a
   * lost answer. Null: none is open, or its agent is not among `agents`. Throws `lease_lost`, or `conflict` while a turn that
   * was sent has not ended.
   */
  begin(fence: Fence, agents: readonly string[]): Promise<Turn | null>;
  /** Prolongs leases; returns those that are lost. */
  renew(fences: readonly Fence[], leaseMs: number): Promise<Fence[]>;
  /** Gives the lease back; open turns become claimable. Does nothing when the lease is lost. */
  release(fence: Fence): Promise<void>;
  /** Workers that hold leases now. */
  workers(): Promise<WorkerInfo[]>;
  /** The processes on record for the conversations that a worker holds: of their sessions, and of turns that were sent. */
  processesOf(worker: string): Promise<ProcessIdentity[]>;
  /** Frees every lease of a worker that is known to be gone. */
  forgetWorker(worker: string): Promise<void>;

  // ── under the fence ──────────────────────────────────────────────────────────────────────────────────────────────────
  /**
   * Applies all writes in one transaction, in order, and gives their events the next numbers; answers with the last of them.
   * Every write takes one counter: the first takes `counter`, the next `counter + 1`, and so on, however many events each
   * makes. A commit of which any counter was used in this epoch before is a repeat: it changes nothing and gives the same
   * answer (R5). Counters may have gaps. Only the epoch decides whether the lease is held: one that has run out and that
   * nobody took can still be written under. Throws `lease_lost` when it was taken, released or its worker forgotten;
   * `conflict` when a native session belongs to another conversation, when a turn has ended, was never begun or was sent
   * before, when it is given to a session of another agent, or when a receipt is of another turn; `invalid` when a session's
   * watermark would be beyond the head (R9) or a record does not fit its turn. Then nothing of it is written.
   */
  commit(fence: Fence, counter: number, writes: readonly Write[]): Promise<{ seq: number }>;

  // ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────
  /** By number, rising, a page. `bytes`: how large it may be, for whoever has many of them; it still has at least one event. */
  events(
    owner: string,
    conversation: string,
    range: { after: number; limit: number; bytes?: number },
  ): Promise<ConversationEvent[]>;
  findTurn(owner: string, turn: string): Promise<Turn | null>;
  /** By the caller's idempotency key. */
  findRequest(owner: string, requestId: string): Promise<Turn | null>;
  /** By number, rising, a page. */
  turns(owner: string, conversation: string, page: { after: number; limit: number }): Promise<Turn[]>;
  /** Events of one turn, rising, a page. */
  turnEvents(owner: string, turn: string, range?: { after?: number; limit?: number }): Promise<ConversationEvent[]>;
  /** Records with `n` up to `upTo`, newest first, a page. */
  recordsBefore(owner: string, conversation: string, page: { upTo: number; limit: number }): Promise<TurnRecord[]>;
  /** Records with `n` after `after`, oldest first, a page. */
  recordsAfter(owner: string, conversation: string, page: { after: number; limit: number }): Promise<TurnRecord[]>;
  /** How many records have `n` after `after`. Must not grow with the number of those before. */
  countRecordsAfter(owner: string, conversation: string, after: number): Promise<number>;
  /** The lineage, most recently used first. */
  sessions(owner: string, conversation: string, filter?: { agent?: string; limit?: number }): Promise<Session[]>;
  /**
   * Whether a native session belongs to another conversation, whoever owns that: to the one that can use it, else to the last
   * that had it (R1). Throws `not_found`.
   */
  sessionIsElsewhere(owner: string, conversation: string, native: NativeSession): Promise<boolean>;
  /** By the agent's id, in any of this owner's conversations; most recently used first. */
  findSessions(owner: string, id: string): Promise<Session[]>;
  /** Our copy of a session's own transcript file, byte for byte; null: there is none. */
  transcript(owner: string, conversation: string, ref: string): Promise<Uint8Array | null>;
  /** Rising by turn and attempt; the newest `limit` of them. */
  receipts(owner: string, conversation: string, page?: { limit?: number; turn?: number }): Promise<Receipt[]>;
  /** Oldest first, a page; `after` is the id of the last one of the page before. */
  permissions(
    owner: string,
    filter: { conversation?: string; turn?: string; open?: boolean },
    page?: { after?: string; limit?: number },
  ): Promise<Permission[]>;
  findPermission(owner: string, permission: string): Promise<Permission | null>;
  summary(owner: string, conversation: string): Promise<Summary>;
  /** Sums per day (UTC) and agent, newest day first. */
  usage(owner: string, filter?: { since?: string }): Promise<UsageRow[]>;
  /** Turns whose prompt or answer has all the words, the best of them. `query` is words, never an expression. */
  search(owner: string, query: string, limit: number): Promise<SearchHit[]>;
  /** Walks the chain of a conversation's events, also of an erased one. Null: whole. Else the first number that does not fit. */
  verify(owner: string, conversation: string): Promise<number | null>;

  // ── keys to the HTTP interface ───────────────────────────────────────────────────────────────────────────────────────
  /** `conflict` when the id is taken. */
  createKey(owner: string, key: NewKey): Promise<ApiKey>;
  /** Whoever's it is: the key says on whose behalf it acts. Also one that has expired or was revoked; null: there is none. */
  findKey(id: string): Promise<ApiKey | null>;
  /** All of the owner's, newest first. */
  keys(owner: string): Promise<ApiKey[]>;
  /** From now on it opens nothing. One that was revoked before stays as it is. Throws `not_found`. */
  revokeKey(owner: string, id: string): Promise<ApiKey>;

  /** What is on record, of all owners: for whoever looks for what was left over. */
  census(): Promise<Census>;
  /** The tasks that turns are had for. */
  readonly tasks: TaskStore;

  // ── the bell ─────────────────────────────────────────────────────────────────────────────────────────────────────────
  /**
   * Calls back when something may have changed, in this process or another: with the ids of conversations and tasks that
   * have new events, or with null when any may have. Only a hint to read again: it may come late, twice or for nothing, and
   * correct callers also work without it. `own`: of those that moved in this process, the ones in which nothing has happened but
   * what the holder of the lease has written, who need not be told.
   */
  listen(listener: (moved: readonly string[] | null, own?: ReadonlySet<string>) => void): () => void;
  close(): Promise<void>;
}

/** The right to write: the epoch under which the lease was taken. */
export interface Fence {
  readonly conversation: string;
  readonly owner: string;
  readonly epoch: number;
}

export interface NewConversation {
  readonly id: string;
  readonly key: string | null;
  readonly title: string | null;
  readonly agent: string | null;
  readonly driver: Driver;
  readonly sandbox: string;
  readonly cwd: string | null;
  readonly place: string;
  readonly restore: RestoreOverride;
}

export type NewKey = Pick<ApiKey, 'id' | 'name' | 'scopes' | 'hash' | 'expiresAt'>;

export interface NewTurn {
  readonly id: string;
  readonly conversation: string;
  readonly requestId: string | null;
  /** The agent that the caller named; null: that of the previous turn, else the conversation's, else `defaultAgent`. */
  readonly agent: string | null;
  readonly defaultAgent: string | null;
  /** The agents there are: a turn that would need another is `agent_unavailable`, and not accepted. Left out: any. */
  readonly agents?: readonly string[];
  readonly prompt: Prompt;
  readonly options: TurnOptions;
  readonly retryOf: string | null;
}

export interface Enqueued {
  readonly turn: Turn;
  /** The number of its `turn.queued`. */
  readonly seq: number;
  /** The same request was accepted before: this is the turn of then. */
  readonly duplicate: boolean;
}

/** What the holder of a conversation does with a turn as soon as it is accepted. */
export interface Onward {
  readonly fence: Fence;
  /** The agents that it can run. */
  readonly agents: readonly string[];
  /** What to write when the turn has this number and this agent; null: nothing. */
  readonly ahead: { readonly n: number; readonly agent: string; readonly writes: readonly Write[] } | null;
  /** The counter of the first of the writes. They are never repeated: a turn is accepted once. */
  readonly counter: number;
}

export interface Accepted extends Enqueued {
  /** The turn as it was begun; null: it was not. Another one comes first, it is a duplicate, its agent is none of these, or the lease is lost. */
  readonly begun: Turn | null;
  /** Whether the writes were made. */
  readonly written: boolean;
}

export interface ImportedHistory {
  readonly records: readonly TurnRecord[];
  /** Kept for the record, closed: a native session of elsewhere is never used here. */
  readonly sessions: readonly {
    id: string;
    agent: string;
    origin: SessionOrigin;
    watermark: number;
    parent: string | null;
  }[];
}

export interface WorkerInfo {
  readonly id: string;
  readonly process: ProcessIdentity;
}

export interface ClaimRequest {
  readonly worker: WorkerInfo;
  readonly place: string;
  /** The agents that this worker can run; a conversation whose next turn needs another one is left alone. */
  readonly agents: readonly string[];
  readonly driver: Driver;
  readonly leaseMs: number;
  /** Only this conversation, whoever owns it, with or without an open turn; else any that has one. */
  readonly conversation?: string;
}

export interface Claim {
  readonly fence: Fence;
  readonly conversation: Conversation;
  /** Begun, and to be run now; null: there is none, or `unfinished` comes first. */
  readonly turn: Turn | null;
  /** Sent under an earlier epoch and not ended: it is ended before anything else (R6). */
  readonly unfinished: Turn | null;
}

/** What a holder of the lease writes. Each write is at least one event, save one that finds nothing to do. */
export type Write =
  | { readonly write: 'event'; readonly event: EventDraft }
  /** A session of the agent, recorded when seen, or before use when we assign its id (R1). `turn`: it is given to that turn. */
  | { readonly write: 'open-session'; readonly session: NewSession; readonly turn: string | null }
  | {
      readonly write: 'change-session';
      readonly ref: string;
      readonly change: SessionChange;
      readonly reason: string | null;
    }
  /** Stored under (turn, attempt); a later one for the same replaces it. Its usage counts for the session, not for a turn. */
  | {
      readonly write: 'receipt';
      readonly receipt: Receipt;
      readonly turn: string | null;
      readonly session: string | null;
    }
  /** From here on the prompt may have reached the agent (R6). */
  | { readonly write: 'send'; readonly turn: string; readonly sent: Sent }
  /** The attempt failed and may be tried again: not sent any more, attempt + 1. */
  | { readonly write: 'retry'; readonly turn: string; readonly failure: Failure }
  | { readonly write: 'ask'; readonly turn: string; readonly permission: NewPermission }
  /** Does nothing when somebody has answered meanwhile: the first answer wins. */
  | { readonly write: 'withdraw'; readonly permission: string; readonly turn: string; readonly reason: string }
  | { readonly write: 'end'; readonly turn: string; readonly end: EndOfTurn };

/** A session by where it lives and the id that it has there. */
export interface NativeSession {
  readonly storage: string;
  readonly id: string;
}

export interface NewSession {
  readonly ref: string;
  readonly id: string;
  readonly agent: string;
  /** Where it lives: another agent over the same storage has the same sessions. Left out: it is known by its agent's name. */
  readonly storage?: string;
  readonly origin: SessionOrigin;
  readonly parent: string | null;
  readonly watermark: number;
  readonly dropped: number;
  readonly state: SessionState;
  readonly position: string | null;
  readonly process: ProcessIdentity | null;
}

export interface SessionChange {
  readonly state?: SessionState;
  readonly watermark?: number;
  readonly dropped?: number;
  readonly position?: string | null;
  readonly process?: ProcessIdentity | null;
  readonly memo?: string | null;
  /** More of the agent's transcript file. `from` is what is mirrored already, or 0 to begin anew; else `invalid`. */
  readonly mirror?: { readonly from: number; readonly bytes: Uint8Array };
}

export interface NewPermission {
  readonly id: string;
  readonly attempt: number;
  readonly title: string;
  readonly toolCall: unknown;
  readonly options: readonly PermissionOption[];
}

/** The one end of a turn. Open permissions of it are withdrawn. */
export interface EndOfTurn {
  readonly outcome: TurnEnd;
  readonly failure: Failure | null;
  /** Of a turn that was sent, which so becomes part of the history and its head; null: it was never sent. */
  readonly record: TurnRecord | null;
  /**
   * The prompt of its first attempt turned out not to have left, or not to have been taken: the turn counts as never sent. Left
   * out: as it is known.
   */
  readonly unsent?: true;
  /** Our reference of the session that it counts for; null: none. */
  readonly session: string | null;
  readonly usage: Usage;
}

export interface UsageRow {
  readonly day: string;
  readonly agent: string;
  readonly turns: number;
  readonly usage: Usage;
}

export interface SearchHit {
  readonly conversation: string;
  readonly key: string | null;
  readonly title: string;
  readonly n: number;
  readonly snippet: string;
}
