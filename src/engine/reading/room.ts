import { ThroughlineError } from '../../core/errors.ts';
import { sizeOf } from '../../core/size.ts';

/** What may still be gathered for one answer. */
export class Room {
  readonly #most: number;
  #taken = 0;

  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }

  /** Throws `too_large` when it is more than there is room for. */
  take(value: unknown): void {
    this.#taken += sizeOf(value);
    if (this.#taken <= this.#most) return;
    throw new ThroughlineError('too_large', `The conversation is larger than ${this.#most} bytes.`, {
      hint: 'Read its turns in pages, or all of it on the data home itself: "throughline --embedded".',
    });
  }

  /** The same value, if there is room for it. */
  taking<T>(value: T): T {
    this.take(value);
    return value;
  }
}
