import type { Prompt } from '../core/content.ts';
import type { Conversation } from '../core/conversation.ts';
import type { ChainCheck, ConversationEvent } from '../core/event.ts';
import type { Permission } from '../core/permission.ts';
import type { ExportedConversation } from '../core/portable.ts';
import type { Receipt } from '../core/receipt.ts';
import type { RestoreOverride } from '../core/restore-settings.ts';
import type { Session } from '../core/session.ts';
import type { Summary } from '../core/summary.ts';
import type { AgentTraits } from '../core/traits.ts';
import type { PermissionMode, Turn } from '../core/turn.ts';
import type { UsagePage } from '../core/usage-page.ts';
import type { Login } from './agent.ts';
import type { SearchHit } from './store/history.ts';
import type { LastUsage, UsageRow } from './store/usage.ts';

/**
 * Everything that a face can do, on behalf of one owner. Embedded or over HTTP: the same interface, the same answers.
 * Wherever a conversation is named, our id and the caller's key both serve. Unknown or another owner's: `not_found`.
 */
export interface Engine {
  readonly owner: string;
  /** The same engine on behalf of another owner. `by`: who acts, as the record has it (answers, cancels); else the owner. */
  as(owner: string, by?: string): Engine;

  /** Finds the conversation by its key or makes it. What is set and pinned otherwise already is `refused` (R7, R8). */
  ensure(spec: ConversationSpec): Promise<Conversation>;
  conversation(idOrKey: string): Promise<Conversation>;
  /**
   * Most recently changed first; `before` is of the last one of the page before. This and every other page ends early when what it
   * holds is large: one that is short is not the last, only an empty one is.
   */
  list(page?: { limit?: number; before?: { updatedAt: number; id: string } }): Promise<Conversation[]>;
  rename(conversation: string, title: string): Promise<Conversation>;

  /**
   * Forgets all that was said in it; its key is free then, and only `verify`, by its id, still knows it. What agents have written
   * themselves (their sessions, the directory they worked in) is not touched. `conflict` while a turn, or a task in it, is open.
   */
  erase(conversation: string): Promise<void>;

  /** Accepts a prompt durably and returns at once; no agent was touched. `follow` from `seq` shows what becomes of it. */
  submit(conversation: string, prompt: Prompt | string, options?: SubmitOptions): Promise<Submitted>;
  turn(id: string): Promise<Turn>;
  /** The answer of a turn that has ended, with the receipt of its last attempt. */
  answerOf(turn: string): Promise<{ turn: Turn; reply: string; receipt: Receipt }>;
  /** By number, rising, a page. */
  turns(conversation: string, page?: { after?: number; limit?: number }): Promise<Turn[]>;
  /** Returns the turn as it is after asking; a running one ends a little later. */
  cancel(turn: string): Promise<Turn>;
  /** Submits the prompt of an ended turn again, as a new turn with `retryOf`. */
  retry(turn: string, options?: { requestId?: string }): Promise<Submitted>;

  /** Yields events after `after` in order, without gaps or doubles, and waits for more until the signal aborts. */
  follow(conversation: string, options?: { after?: number; signal?: AbortSignal }): AsyncIterable<ConversationEvent>;
  /**
   * Yields which conversations of this owner have news, as they do, until the signal aborts. Only hints to look again: they may
   * come late, twice or for nothing, and several changes of one conversation may be one hint.
   */
  hints(options?: { signal?: AbortSignal }): AsyncIterable<Hint>;
  /** Restores the session ahead of a prompt. Resolves with the receipt, or null when another process holds the conversation. */
  warm(conversation: string, options?: { agent?: string; restore?: RestoreOverride }): Promise<Receipt | null>;

  show(conversation: string, options?: Bounded): Promise<ConversationView>;
  summary(conversation: string): Promise<Summary>;
  sessions(conversation: string, options?: Bounded): Promise<Session[]>;
  receipts(conversation: string, options?: Bounded): Promise<Receipt[]>;
  permission(id: string): Promise<Permission>;
  /** Oldest first, a page of 100 or of `limit`; `after` is the id of the last one of the page before. */
  permissions(filter?: PermissionFilter): Promise<Permission[]>;
  answer(permission: string, optionId: string): Promise<Permission>;

  /** `turn`: the number of the last turn to take along; left out: the head. */
  fork(conversation: string, options?: ForkOptions): Promise<Conversation>;
  export(conversation: string, options?: Bounded): Promise<ExportedConversation>;
  import(exported: unknown, options?: { key?: string; cwd?: string }): Promise<Conversation>;
  search(query: string, options?: { limit?: number }): Promise<SearchHit[]>;
  /** What was used, by day (UTC) and agent, newest day first, a page of 100 or of `limit`. */
  usage(page?: UsagePage<LastUsage>): Promise<UsageRow[]>;
  /**
   * Checks the chain of events, also of an erased conversation by its id. `head`: what an earlier check gave, and was kept
   * elsewhere. Throws `invalid` for one that is none.
   */
  verify(conversation: string, options?: { head?: string }): Promise<ChainCheck>;
  /** What there is. `login`: each is started, all at once and for half a minute at most, to see whether somebody is logged in. */
  agents(options?: { login?: boolean }): Promise<AgentInfo[]>;

  /** Stops taking turns, lets running ones end within `graceMs`, interrupts the rest, and closes. Idempotent. */
  close(options?: { graceMs?: number }): Promise<void>;
}

/** `most`: a conversation of about more bytes than these is `too_large`; left out: any will do. */
export interface Bounded {
  readonly most?: number;
}

export interface PermissionFilter {
  readonly conversation?: string;
  /** Only those that wait for an answer, or only the others. */
  readonly open?: boolean;
  readonly after?: string;
  readonly limit?: number;
}

export interface Hint {
  /** Null: any may have changed. */
  readonly conversation: string | null;
  /** The number of its last event; null: any may have changed. */
  readonly seq: number | null;
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
}

export interface SubmitOptions {
  readonly requestId?: string;
  readonly agent?: string;
  readonly session?: string;
  readonly restore?: RestoreOverride;
  readonly permissions?: PermissionMode;
}

export interface Submitted {
  readonly turn: Turn;
  /** The number of the event that accepted the turn. */
  readonly seq: number;
  /** The request id was known already: this is the turn of then. */
  readonly duplicate: boolean;
}

export interface ForkOptions {
  readonly turn?: number;
  readonly key?: string;
  readonly title?: string;
  readonly cwd?: string;
}

/** A whole conversation for a person or a script: turns with their answers, lineage and receipts. */
export interface ConversationView {
  readonly conversation: Conversation;
  readonly turns: readonly TurnView[];
  readonly sessions: readonly SessionView[];
  readonly receipts: readonly Receipt[];
}

export type TurnView = Turn & { readonly reply: string };

/** A session as people see it: `parent` is the agent's id of the parent. */
export type SessionView = Omit<Session, 'parent' | 'ref' | 'memo'> & { readonly parent: string | null };

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
