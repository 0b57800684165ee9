import type { ChainCheck } from '../core/event.ts';
import type { UsagePage } from '../core/input/usage-page.ts';
import type { BudgetInput } from '../core/limits/budget.ts';
import type { TimeOverride } from '../core/limits/time-limits.ts';
import type { ExportedConversation } from '../core/portable.ts';
import type { PublicConversation, PublicSummary } from '../core/public/conversation.ts';
import type { PublicEvent } from '../core/public/event.ts';
import type { PublicReceipt, PublicSession } from '../core/public/session.ts';
import type { PublicPermission, PublicTurn } from '../core/public/turn.ts';
import type { RestoreOverride } from '../core/restore/restore-settings.ts';
import type { AgentTraits } from '../core/restore/traits.ts';
import type { Prompt } from '../core/turn/content.ts';
import type { Denial } from '../core/turn/permission.ts';
import type { PermissionMode } from '../core/turn/turn.ts';
import type { Login } from './agent.ts';
import type { LastUsage, UsageRow } from './store/usage.ts';

/**
 * Everything that a face can do, on behalf of one owner. Embedded or over HTTP: the same interface, the same answers.
 * All values are public ones (`core/public/`): what is stored beside them stays inside.
 * Wherever a conversation is named, our id and the caller's key both work. Unknown or another owner's: `not_found`; only a first
 * prompt creates it.
 */
export interface Engine {
  readonly owner: string;
  /** The same engine on behalf of another owner. `by`: who acts, as the record has it (answers, cancels); else the owner. It is for owners that were checked before. */
  as(owner: string, by?: string): Engine;

  /** Finds the conversation by its key or makes it. `refused` when it exists with other pinned settings (R7, R8). */
  ensure(spec: ConversationSpec): Promise<PublicConversation>;
  conversation(idOrKey: string): Promise<PublicConversation>;
  /**
   * Most recently changed first; `before` names the last one of the previous page. This and every other page ends early when
   * its values are large: a short page is not the last, only an empty one is.
   */
  list(page?: ListOptions): Promise<PublicConversation[]>;
  rename(conversation: string, title: string): Promise<PublicConversation>;

  /**
   * Deletes all that was said in it and frees its key; only `verify`, by its id, still finds it. Returns what agents have written
   * themselves and what is still there. `conflict` while a turn, or a task in it, is open. With `sandbox`, its own sandbox is
   * deleted as well, also of a conversation that was erased before, by its id. `refused` when the sandbox is shared, or when
   * another conversation works in it; then nothing is erased. A directory that the caller named is never deleted.
   */
  erase(conversation: string, options?: EraseOptions): Promise<Erased>;

  /**
   * Stores a prompt and returns at once, before any agent is started. `follow` after `seq` to see what happens. The first prompt
   * to a new key creates the conversation, in the same commit.
   */
  submit(conversation: string, prompt: Prompt | string, options?: SubmitOptions): Promise<Submitted>;
  turn(id: string): Promise<PublicTurn>;
  /** The answer of a turn that has ended. Throws `conflict` when it has not, `cancelled` when the signal aborts. */
  answerOf(turn: string, options?: AnswerOptions): Promise<TurnAnswer>;
  /** With their answers, by number, rising, a page. */
  turns(conversation: string, page?: { after?: number; limit?: number }): Promise<TurnView[]>;
  /** Returns the turn as it is after asking; a running one ends a little later. */
  cancel(turn: string): Promise<PublicTurn>;
  /** Submits the prompt of an ended turn again, as a new turn with `retryOf`. */
  retry(turn: string, options?: { requestId?: string }): Promise<Submitted>;

  /**
   * Yields events after `after` in order, without gaps or duplicates, and waits for more until the signal aborts. Throws `log_changed`
   * when there is no such event, or when the log is not `log` (the `logId` of the conversation when the number was seen): then read
   * again from the start.
   */
  follow(conversation: string, options?: FollowOptions): AsyncIterable<PublicEvent>;
  /**
   * Yields which conversations of this owner have changed, until the signal aborts. These are only hints to look again: they
   * may come late, twice or without a change, and several changes of one conversation may be one hint.
   */
  hints(options?: { signal?: AbortSignal }): AsyncIterable<Hint>;
  /**
   * Restores the session ahead of a prompt. Resolves with the receipt, or null when another process holds the conversation, or
   * no slot is free.
   */
  warm(conversation: string, options?: { agent?: string; restore?: RestoreOverride }): Promise<PublicReceipt | null>;

  show(conversation: string, options?: Bounded): Promise<ConversationView>;
  summary(conversation: string): Promise<PublicSummary>;
  sessions(conversation: string, options?: Bounded): Promise<PublicSession[]>;
  receipts(conversation: string, options?: Bounded): Promise<PublicReceipt[]>;
  permission(id: string): Promise<PublicPermission>;
  /** Oldest first, a page of 100 or of `limit`; `after` is the id of the last one of the previous page. */
  permissions(filter?: PermissionFilter): Promise<PublicPermission[]>;
  answer(permission: string, optionId: string): Promise<PublicPermission>;

  /** `turn`: the number of the last turn to take along; left out: the head. */
  fork(conversation: string, options?: ForkOptions): Promise<PublicConversation>;
  export(conversation: string, options?: Bounded): Promise<ExportedConversation>;
  import(exported: unknown, options?: { key?: string; cwd?: string }): Promise<PublicConversation>;
  search(query: string, options?: { limit?: number }): Promise<SearchHit[]>;
  /** What was used, by day (UTC) and agent, newest day first, a page of 100 or of `limit`. */
  usage(page?: UsagePage<LastUsage>): Promise<UsageRow[]>;
  /**
   * Checks the hash chain of the events, also of an erased conversation by its id. `head`: what an earlier check returned and
   * was kept elsewhere. Throws `invalid` for one that is malformed.
   */
  verify(conversation: string, options?: { head?: string }): Promise<ChainCheck>;
  /**
   * The agents. `login`: also starts each, for half a minute at most, to see whether somebody is logged in. All who ask at the same
   * time share one look at an agent, and its answer is kept for up to half a minute.
   */
  agents(options?: { login?: boolean }): Promise<AgentInfo[]>;

  /**
   * Starts nothing more, lets turns that were sent end within `graceMs` (5 seconds, if left out), interrupts the rest, and closes.
   * What is queued stays stored. Idempotent.
   */
  close(options?: { graceMs?: number }): Promise<void>;
}

export interface FollowOptions {
  readonly after?: number;
  readonly log?: string;
  readonly signal?: AbortSignal;
}

/** `most`: a conversation of more than about this many bytes is `too_large`; left out: no limit. */
export interface Bounded {
  readonly most?: number;
}

export interface PermissionFilter {
  readonly conversation?: string;
  /** Only those of this turn. */
  readonly turn?: string;
  /** Only those that wait for an answer, or only the others. */
  readonly open?: boolean;
  readonly after?: string;
  readonly limit?: number;
}

export interface Hint {
  /** Null: any may have changed. */
  readonly conversationId: string | null;
  /** The number of its last event; null: any may have changed. */
  readonly seq: number | null;
}

/** A turn that was found by its words. */
export interface SearchHit {
  readonly conversationId: string;
  readonly key: string | null;
  readonly title: string;
  readonly n: number;
  readonly snippet: string;
}

export interface ConversationSpec {
  readonly key?: string;
  /** For the first turn, when the conversation is made; from then on a turn that names none goes to the agent of the last. */
  readonly agent?: string;
  readonly title?: string;
  readonly cwd?: string;
  /** A name, unique per owner, of a sandbox that several conversations share; left out: one of its own. */
  readonly sandbox?: string;
  readonly restore?: RestoreOverride;
  /**
   * How much may be spent in it on a day (UTC): `2 USD`, `50k tokens`. It can only lower what the settings allow. Also changes that
   * of a conversation that exists; null removes it.
   */
  readonly limitPerDay?: BudgetInput | null;
}

export interface EraseOptions {
  /** Also delete its own sandbox: the work and the sessions of its agents in it. Left out: no. */
  readonly sandbox?: boolean;
}

export interface Erased {
  /** The id of the conversation. */
  readonly erased: string;
  /** What is still there, outside of the store. */
  readonly remains: readonly Remains[];
}

/** The sandbox of the conversation · the directory that the caller named · a session that its agent keeps elsewhere. */
export type Remains =
  | { readonly what: 'sandbox' | 'directory'; readonly where: string }
  | { readonly what: 'session'; readonly where: string; readonly agent: string; readonly sessionId: string };

export interface ListOptions {
  readonly limit?: number;
  readonly before?: { readonly updatedAt: number; readonly id: string };
  /** Only those that have used this session (the agent's id), the one that can still use it first. All in one page. */
  readonly session?: string;
}

export interface AnswerOptions {
  /** Wait for the end of the turn, but at most so long: up to 60,000. Left out: do not wait. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

export interface TurnAnswer {
  readonly turn: PublicTurn;
  readonly reply: string;
  /** Of its last attempt; null: it ended before an agent was asked. */
  readonly receipt: PublicReceipt | null;
  /** Questions that nobody answered. */
  readonly denied: readonly Denial[];
}

export interface SubmitOptions {
  /**
   * Whether to create the conversation when there is none. Left out: yes, unless its name looks like an id of ours. Such a name is
   * rather that of a conversation that is gone.
   */
  readonly create?: boolean;
  readonly requestId?: string;
  readonly agent?: string;
  /**
   * The agent's id of an existing session to continue in. One that the conversation has not used is adopted: its own turns come
   * before this one. `conflict` while another turn is open.
   */
  readonly session?: string;
  /**
   * The id for a new session, which gets the history as any new one does. `refused` when the agent issues its ids itself, or when
   * the id was used before.
   */
  readonly newSession?: string;
  readonly restore?: RestoreOverride;
  readonly permissions?: PermissionMode;
  /** How long this turn may take, and how long its agent may be silent. */
  readonly limits?: TimeOverride;
}

export interface Submitted {
  readonly turn: PublicTurn;
  /** The number of the event that accepted the turn. */
  readonly seq: number;
  /** The request id was used before: this is the turn from then. */
  readonly duplicate: boolean;
}

export interface ForkOptions {
  /** The number of the last turn to copy. */
  readonly turn?: number;
  readonly key?: string;
  readonly title?: string;
  readonly cwd?: string;
}

/** A whole conversation for a person or a script: turns with their answers, lineage and receipts. */
export interface ConversationView {
  readonly conversation: PublicConversation;
  readonly turns: readonly TurnView[];
  /** In the order in which they were opened. */
  readonly sessions: readonly PublicSession[];
  readonly receipts: readonly PublicReceipt[];
}

export type TurnView = PublicTurn & { readonly reply: string };

export interface AgentInfo {
  readonly name: string;
  readonly adapter: string;
  readonly isDefault: boolean;
  /** Where its program was found, for people; null: it was not, or it comes with Throughline. */
  readonly where: string | null;
  /** Null: not available, `problem` says why. */
  readonly traits: AgentTraits | null;
  /** What is wrong with it, and what to do. Beside traits: why it is not asked for all that it says it can do. */
  readonly problem: string | null;
  /** Null: it was not asked for, or the agent needs none. */
  readonly login: Login | null;
}
