import type { Prompt } from '../../core/content.ts';
import type { Turn, TurnOptions } from '../../core/turn.ts';
import type { Fence } from './leases.ts';
import type { Write } from './writes.ts';

/** Turns, from outside: anybody's door, which needs the row's lock and not the fence. */
export interface TurnStore {
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
  findTurn(owner: string, turn: string): Promise<Turn | null>;
  /** By the caller's idempotency key. */
  findRequest(owner: string, requestId: string): Promise<Turn | null>;
  /** By number, rising, a page. */
  turns(owner: string, conversation: string, page: { after: number; limit: number }): Promise<Turn[]>;
}

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
