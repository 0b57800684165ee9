import type { ChainCheck, ConversationEvent } from '../../core/event.ts';
import type { UnknownPart } from '../../core/restore/adopted.ts';
import type { Summary } from '../../core/summary.ts';
import type { TurnRecord } from '../../core/turn/record.ts';

/** Events as they came, and records of finished turns. */
export interface HistoryStore {
  /**
   * By number, rising, a page. `bytes`: how large the page may be; it always has at least one event. A page with fewer events than
   * `limit` that is smaller (by `sizeOf`) than `bytes` is the last.
   */
  events(
    owner: string,
    conversation: string,
    range: { after: number; limit: number; bytes?: number },
  ): Promise<ConversationEvent[]>;
  /**
   * The last ones before a number, by number, rising, a page. `turn`: only those of the turn of this number; `not_found` when there is
   * no such turn. The cost must not grow with the number of other events.
   */
  eventsBefore(
    owner: string,
    conversation: string,
    range: { before: number; limit: number; turn?: number },
  ): Promise<ConversationEvent[]>;
  /** Events of one turn, rising, a page. */
  turnEvents(owner: string, turn: string, range?: { after?: number; limit?: number }): Promise<ConversationEvent[]>;
  /** Records with `n` up to `upTo`, newest first, a page. */
  recordsBefore(owner: string, conversation: string, page: { upTo: number; limit: number }): Promise<TurnRecord[]>;
  /** Records with `n` after `after`, oldest first, a page. */
  recordsAfter(owner: string, conversation: string, page: { after: number; limit: number }): Promise<TurnRecord[]>;
  /** How many records have `n` after `after`. The cost must not grow with the number of those before. */
  countRecordsAfter(owner: string, conversation: string, after: number): Promise<number>;
  /** The turns before which a part of the history is missing, because nobody could read it; oldest first; usually none. */
  unknownParts(owner: string, conversation: string): Promise<UnknownPart[]>;
  summary(owner: string, conversation: string): Promise<Summary>;
  /**
   * Conversations whose title has all the words, most recently changed first, then the best matches among turns whose prompt or answer has
   * them. The last word may be the beginning of one. If a turn of a conversation is found, its title is not listed as well. `query` is words,
   * never an expression. Throws `too_many` when many searches of the owner wait, and `too_large` when it takes too long.
   */
  search(owner: string, query: string, limit: number): Promise<SearchHit[]>;
  /** Checks the chain of a conversation's events, also of an erased one. `head`: what an earlier check gave, kept elsewhere. */
  verify(owner: string, conversation: string, head?: string): Promise<ChainCheck>;
}

export interface SearchHit {
  readonly conversation: string;
  readonly key: string | null;
  readonly title: string;
  /** The turn; null: the words are in the title of the conversation. */
  readonly n: number | null;
  readonly snippet: string;
}
