import type { ConversationEvent } from 'throughline/client';

/**
 * The position of one reader in a conversation. When another tab becomes the leader, events may come twice, late or after a gap. The
 * cursor returns each once, in order. Events after a gap wait until the gap is filled.
 */
export class Cursor {
  #after: number;
  /** All events up to this one exist, whether they have arrived or not. */
  #upTo: number;
  readonly #waiting = new Map<number, ConversationEvent>();

  constructor(after: number) {
    this.#after = after;
    this.#upTo = after;
  }

  /** The number of the last event that was returned. */
  get after(): number {
    return this.#after;
  }

  /** Adds events, and returns those that are next in order. */
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

  /** Notes that events up to this one exist. */
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
