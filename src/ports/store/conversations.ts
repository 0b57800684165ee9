import type { Arrangement, CheckedFilter, Conversation, TitleSource } from '../../core/conversation.ts';
import type { Budget } from '../../core/limits/budget.ts';
import type { ExportedConversation } from '../../core/portable.ts';
import type { Session } from '../../core/restore/session.ts';
import type { KeptChoices } from '../../core/turn/choices.ts';

/** Making, finding, copying and erasing conversations. */
export interface ConversationStore {
  /** Finds the owner's conversation by `key`, or makes it. Without a key it always makes one. */
  ensureConversation(owner: string, spec: NewConversation): Promise<{ conversation: Conversation; created: boolean }>;
  /** By our id, or by the caller's key. Null: none of this owner. An id wins over a key that looks the same. */
  findConversation(owner: string, idOrKey: string): Promise<Conversation | null>;
  /**
   * Most recently changed first, a page, only those that match the filter. `before` is the `updatedAt` and id of the last one of the
   * previous page. The cost must not grow with the number of conversations. With a filter for an agent that few of them have, or for
   * how they are arranged, it may grow with the index entries that are skipped.
   */
  listConversations(
    owner: string,
    page: CheckedFilter & { limit: number; before?: { updatedAt: number; id: string } },
  ): Promise<Conversation[]>;
  /** Sets the title, unless it has one from a higher source (`titleWins`). */
  setTitle(owner: string, conversation: string, title: string, source: TitleSource): Promise<Conversation>;
  /** Pins it, puts it away, or undoes that. Its place in the list stays. A new prompt brings a conversation back that was put away. */
  arrange(owner: string, conversation: string, change: Arrangement): Promise<Conversation>;
  /** How many are put away. The cost must not grow with the number of the others. */
  countPutAway(owner: string): Promise<number>;
  /** Sets how much may be spent in it on a day; null: as much as the settings allow. */
  setLimitPerDay(owner: string, conversation: string, limit: Budget | null): Promise<Conversation>;
  /** Replaces what was chosen for the prompts of its agent. */
  setChoices(owner: string, conversation: string, choices: KeptChoices): Promise<Conversation>;
  /**
   * Copies the records up to turn `n` into a new conversation, whose turn numbers continue and whose `seq` starts at 1. Without a
   * title it takes the source's. `parent.hash` is the SHA-256 of the records' JSON, each followed by a newline. Throws
   * `invalid` when `n` is beyond the head, `conflict` when the key is taken.
   */
  fork(owner: string, source: string, n: number, spec: NewConversation): Promise<Conversation>;
  /** Makes a conversation from records that ended elsewhere. `conflict` when the key is taken. All or nothing. */
  importConversation(owner: string, spec: NewConversation, history: ImportedHistory): Promise<Conversation>;
  /**
   * Erases everything that was said in it. From now on it is `not_found`, and its key is free. What stays: numbers, kinds and times
   * of its events, what `verify` needs, sums of usage, and tasks that worked in it, without their texts. The holder of its lease
   * loses it. `conflict` while a turn, or such a task, is open, unless damage keeps it from ending. Returns what it had outside of the store.
   * `sandbox`: the real path of its sandbox, which the caller deletes next; the store records that until `endErasure`. `refused` when another conversation, of
   * any owner, or an unfinished task works in it. With it, a conversation that was erased before is found as well.
   * `head`: what `verify` returned; `conflict` when the conversation has another one by now.
   */
  eraseConversation(owner: string, conversation: string, options?: EraseStored): Promise<Erasure>;
  /** Records that the sandbox of an erased conversation was deleted, or that its owner was told why not. May be repeated. */
  endErasure(owner: string, conversation: string): Promise<void>;
  /** Conversations of all owners, of this place, that were erased before this time, and whose sandbox still has to be deleted. */
  unfinishedErasures(place: string, before: number): Promise<UnfinishedErasure[]>;
  /**
   * Moves the conversation to another place, into a sandbox of its own, without its directory (R8). Its holder loses the lease; open turns
   * run in the new place. Throws `conflict` while a lease has not ended, and `refused` for a conversation of a tracker. Does nothing if it
   * has this place already.
   */
  moveConversation(owner: string, conversation: string, to: Move): Promise<Conversation>;
  /** A conversation by its id or key; also one that this owner has erased, by its id; also one whose rows are damaged. */
  findToErase(owner: string, idOrKey: string): Promise<ToErase | null>;
}

/** The new place with its name, and who asked for the move. */
export interface Move {
  readonly place: string;
  readonly name: string;
  readonly by: string;
}

export interface ToErase extends Pick<Conversation, 'id' | 'sandbox' | 'place'> {
  /** It was erased before. */
  readonly isErased: boolean;
}

export interface UnfinishedErasure {
  readonly owner: string;
  readonly conversation: string;
  readonly sandbox: string;
}

export interface EraseStored {
  readonly sandbox?: string;
  readonly head?: string;
}

/** What an erased conversation had outside of the store. */
export interface Erasure {
  readonly cwd: string | null;
  /** The sessions that it used here. Empty: it was erased before. */
  readonly sessions: readonly ErasedSession[];
}

export interface ErasedSession extends Pick<Session, 'id' | 'agent' | 'process'> {
  readonly storage: string;
}

export interface NewConversation
  extends Pick<Conversation, 'id' | 'key' | 'agent' | 'driver' | 'sandbox' | 'cwd' | 'place' | 'restore'> {
  /** Null: it is named after its first prompt, a fork after its source. */
  readonly title: string | null;
  /** Null or left out: none of its own. */
  readonly limitPerDay?: Budget | null;
  /** Null or left out: `cwd` itself. */
  readonly project?: string | null;
  /** Left out: nothing is chosen. */
  readonly choices?: KeptChoices;
}

/** Its sessions are stored as closed, for information only: a native session from elsewhere is never used here. */
export type ImportedHistory = Pick<ExportedConversation, 'records' | 'sessions'>;
