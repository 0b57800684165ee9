import type { Principal } from '../access/authenticate.ts';
import { Refusal } from '../refusal.ts';

export interface ReadersOptions {
  /** The most at a time. One owner has at most half of them, so that it cannot lock out the others. */
  readonly most: number;
  /** How often their credentials are checked again. */
  readonly checkMs: number;
  /** Aborted when the server has stopped: every stream ends. */
  readonly shutdown: AbortSignal;
}

export interface Reader {
  readonly principal: Principal;
  /** Abort it to end the stream. */
  readonly stop: AbortController;
}

/** All open streams. When a key is revoked or expires, its streams end within a second. */
export class Readers {
  readonly #options: ReadersOptions;
  readonly #open = new Set<Reader>();
  readonly #ofOwner = new Map<string, number>();
  #checks: NodeJS.Timeout | null = null;

  constructor(options: ReadersOptions) {
    this.#options = options;
    options.shutdown.addEventListener('abort', () => {
      for (const { stop } of this.#open) stop.abort();
    });
  }

  /** Throws `too_many`. */
  come(principal: Principal): Reader {
    const { most, checkMs, shutdown } = this.#options;
    const { owner } = principal;
    const own = this.#ofOwner.get(owner) ?? 0;
    if (this.#open.size >= most) {
      throw new Refusal('too_many', 'There are too many readers.', { hint: 'Try again later.' });
    }
    if (own >= Math.ceil(most / 2)) {
      throw new Refusal('too_many', `"${owner}" already has ${own} readers: half of all that this server allows.`, {
        hint: 'Close some. One stream of /v1/events covers every conversation.',
      });
    }
    const reader = { principal, stop: new AbortController() };
    this.#ofOwner.set(owner, own + 1);
    this.#open.add(reader);
    if (shutdown.aborted) reader.stop.abort();
    this.#checks ??= setInterval(() => void this.#check(), checkMs).unref();
    return reader;
  }

  leave(reader: Reader): void {
    const { owner } = reader.principal;
    this.#open.delete(reader);
    const left = (this.#ofOwner.get(owner) ?? 1) - 1;
    if (left > 0) this.#ofOwner.set(owner, left);
    else this.#ofOwner.delete(owner);
    if (this.#open.size > 0 || this.#checks === null) return;
    clearInterval(this.#checks);
    this.#checks = null;
  }

  /** Checks each key or cookie once, however many readers use it. */
  async #check(): Promise<void> {
    const byProof = Map.groupBy(this.#open, ({ principal }) => principal.proof);
    for (const readers of byProof.values()) {
      // When the database cannot be read at the moment, readers stay.
      const isValid = await readers[0]?.principal.stillValid().catch(() => true);
      if (!isValid) for (const { stop } of readers) stop.abort();
    }
  }
}
