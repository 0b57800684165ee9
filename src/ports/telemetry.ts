import type { Failure } from '../core/errors.ts';
import type { Load } from '../core/limits/slots.ts';
import type { PublicReceipt } from '../core/public/session.ts';
import type { PublicTurn } from '../core/public/turn.ts';
import type { TurnEnd } from '../core/turn/turn.ts';
import type { Usage } from '../core/turn/usage.ts';
import type { StoreConnections } from './store/census.ts';

/**
 * Gets what this process has done, after it is stored. Never throws; nothing depends on it. Called by `observed-store.ts`. Its values are
 * public, because users of the library may implement it.
 */
export interface Telemetry {
  turnBegun(turn: PublicTurn): void;
  /** Called once for every attempt, with its last receipt. `turn`: the id of its turn; null: a warm-up. */
  restored(receipt: PublicReceipt, turn: string | null): void;
  turnEnded(end: EndedTurn): void;
  /** How many turns may run, how many do, and how many wait for an answer. */
  slots?(use: Load & { readonly parallel: number }): void;
  /** Called once, with a function that reads how the connections to a database server are used. */
  connections?(read: () => StoreConnections): void;
}

export interface EndedTurn {
  readonly id: string;
  readonly outcome: TurnEnd;
  readonly failure: Failure | null;
  readonly usage: Usage;
  /** The agent's id of the session that answered; null: none did. */
  readonly sessionId: string | null;
}
