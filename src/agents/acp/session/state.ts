import type { Update } from '../../../core/turn/update.ts';
import type { Flight } from '../../shared/flight.ts';

/*
 * What a session is doing. Only this file changes the state.
 *
 *   free ── repeat ──▶ repeating ── repeated ──▶ free
 *   free ── begin ──▶ prompting ── answered ──▶ answered ── finish ──▶ free
 *                     prompting ── finish (the process is gone) ─────▶ free
 *
 * free       no prompt is in flight. What the agent sends is kept for the next turn.
 * repeating  the agent loads the session and repeats its history. That belongs to no turn.
 * prompting  a prompt is in flight. What the agent sends belongs to its turn.
 * answered   the agent has answered the prompt. What it still sends is kept for the next turn, while this turn is finished.
 *
 * Whether the process is alive: see `AcpConnection.alive`.
 */
type State =
  | { readonly kind: 'free' }
  | { readonly kind: 'repeating'; readonly onUpdate: (update: Update) => void }
  | { readonly kind: 'prompting' | 'answered'; readonly flight: Flight };

const FREE: State = { kind: 'free' };

export class SessionState {
  #now: State = FREE;

  get kind(): State['kind'] {
    return this.#now.kind;
  }

  /** The prompt in flight, until its turn is finished; null: there is none. */
  get flight(): Flight | null {
    return 'flight' in this.#now ? this.#now.flight : null;
  }

  /** Takes the history that the agent repeats; null: it is not loading a session. */
  get onRepeated(): ((update: Update) => void) | null {
    return this.#now.kind === 'repeating' ? this.#now.onUpdate : null;
  }

  repeat(onUpdate: (update: Update) => void): void {
    this.#now = { kind: 'repeating', onUpdate };
  }

  repeated(): void {
    this.#now = FREE;
  }

  begin(flight: Flight): void {
    this.#now = { kind: 'prompting', flight };
  }

  answered(): void {
    if (this.#now.kind === 'prompting') this.#now = { kind: 'answered', flight: this.#now.flight };
  }

  /** The turn is over: the agent answered, or its process is gone. */
  finish(): void {
    this.#now = FREE;
  }
}
