import { type ServerAway, unreachable } from './faults.ts';

/** How long a client waits for a server that is away, and how often it tries meanwhile. */
export interface BackoffSettings {
  /** Counted from the last answer. */
  readonly giveUpMs: number;
  /** The first pause; each is up to twice the one before. */
  readonly firstMs: number;
  readonly longestMs: number;
}

/** The pauses between tries to reach the server. They grow until it answers. */
export class Backoff {
  readonly #settings: BackoffSettings;
  readonly #where: string;
  #awaySince: number | null = null;
  #pauses = 0;
  #longestMs: number;

  constructor(where: string, settings: BackoffSettings) {
    this.#where = where;
    this.#settings = settings;
    this.#longestMs = settings.longestMs;
  }

  /** The server asks for this pause; it becomes the longest one. */
  limit(ms: number): void {
    this.#longestMs = ms;
  }

  /** The server answers. */
  answered(): void {
    this.#awaySince = null;
  }

  /** The server sends what was asked for: the next pause is a short one. */
  reset(): void {
    this.answered();
    this.#pauses = 0;
  }

  /** How long to wait before the next try. Throws `unreachable` when the server has been away for too long. */
  next(why: ServerAway): number {
    const now = performance.now();
    this.#awaySince ??= now;
    if (now - this.#awaySince >= this.#settings.giveUpMs) throw unreachable(this.#where, why);
    const most = Math.min(this.#longestMs, this.#settings.firstMs * 2 ** this.#pauses);
    this.#pauses = Math.min(this.#pauses + 1, 20);
    // Random, so that many clients do not come back at the same moment.
    return most * (0.5 + Math.random() / 2);
  }
}
