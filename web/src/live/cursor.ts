import type { ConversationEvent } from 'throughline/client';

/**
 * How far one reader has got in a conversation. Events may come twice, late or after a hole, because another tab may lead from now on;
 * it hands each out once, in order. What is behind a hole waits until the hole is filled.
 */
export class Cursor {
  #after: number;
  /** All events up to this one exist, whether they have come or not. */
  #upTo: number;
  readonly #waiting = new Map<number, ConversationEvent>();

  constructor(after: number) {
    this.#after = after;
    this.#upTo = after;
  }

  /** The number of the last event that was handed out. */
  get after(): number {
    return this.#after;
  }

  /** The events that can be handed out now. */
  take(events: readonly ConversationEvent[]): ConversationEvent[] {
    for (const event of events) if (event.seq > this.#after) this.#waiting.set(event.seq, event);
    const ready: ConversationEvent[] = [];
    for (let next = this.#waiting.get(this.#after + 1); next; next = this.#waiting.get(this.#after + 1)) {
      ready.push(next);
      this.#waiting.delete(next.seq);
      this.#after = next.seq;
    }
    return ready;
  }

  /** Others have seen events up to this one. */
  exists(seq: number): void {
    this.#upTo = Math.max(this.#upTo, seq);
  }

  /** Events after `after` and before this number are missing; null: none. */
  get missingBefore(): number | null {
    const ahead = Math.min(...this.#waiting.keys());
    if (ahead !== Number.POSITIVE_INFINITY) return ahead;
    return this.#upTo > this.#after ? this.#upTo + 1 : null;
  }
}
