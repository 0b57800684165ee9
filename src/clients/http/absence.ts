import { type Away, unreachable } from './faults.ts';

/** How long a server may be away before its client gives up, and how often it is tried meanwhile. */
export interface Patience {
  /** From the last sign of life on. */
  readonly patienceMs: number;
  /** The first pause; each is up to twice the one before. */
  readonly firstMs: number;
  readonly longestMs: number;
}

/** One absence of the server, or several in a row: pauses that grow, until there is a sign of life. */
export class Absence {
  readonly #patience: Patience;
  readonly #where: string;
  #since: number | null = null;
  #pauses = 0;
  #longestMs: number;

  constructor(where: string, patience: Patience) {
    this.#where = where;
    this.#patience = patience;
    this.#longestMs = patience.longestMs;
  }

  /** The server asks to be left alone for so long; that is the longest pause then, and not every one. */
  atMost(ms: number): void {
    this.#longestMs = ms;
  }

  /** It answers. */
  alive(): void {
    this.#since = null;
  }

  /** It answers, and to some purpose: the next pause is a short one. */
  over(): void {
    this.alive();
    this.#pauses = 0;
  }

  /** How long to wait before the next try. Throws `unreachable` when it has been away for too long. */
  pause(why: Away): number {
    const now = performance.now();
    this.#since ??= now;
    if (now - this.#since >= this.#patience.patienceMs) throw unreachable(this.#where, why);
    const most = Math.min(this.#longestMs, this.#patience.firstMs * 2 ** this.#pauses);
    this.#pauses = Math.min(this.#pauses + 1, 20);
    // Not all at once, when a server comes back to many.
    return most * (0.5 + Math.random() / 2);
  }
}
