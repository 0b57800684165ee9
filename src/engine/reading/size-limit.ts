import { ThroughlineError } from '../../core/errors.ts';
import { sizeOf } from '../../core/input/size.ts';

/** Limits the size of one answer. */
export class SizeLimit {
  readonly #mostBytes: number;
  #bytes = 0;

  constructor(mostBytes = Number.POSITIVE_INFINITY) {
    this.#mostBytes = mostBytes;
  }

  /** Throws `too_large` when all that was added is more than the limit. */
  add(value: unknown): void {
    this.#bytes += sizeOf(value);
    if (this.#bytes <= this.#mostBytes) return;
    throw new ThroughlineError('too_large', `The conversation is larger than ${this.#mostBytes} bytes.`, {
      hint: 'Read its turns in pages, or run "throughline --embedded" on the machine of its data home.',
    });
  }

  /** Adds the value and returns it. */
  checked<T>(value: T): T {
    this.add(value);
    return value;
  }
}
