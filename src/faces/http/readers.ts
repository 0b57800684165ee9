import type { Principal } from './principal.ts';
import { Refusal } from './refusal.ts';

export interface ReadersOptions {
  /** The most at a time. One owner has at most half of them, so that none can shut out the others. */
  readonly most: number;
  /** How often they are asked whether they still may read. */
  readonly checkMs: number;
  /** Aborted when the server ends: every stream does, too. */
  readonly shutdown: AbortSignal;
}

export interface Reader {
  readonly principal: Principal;
  /** Aborted, its stream ends. */
  readonly stop: AbortController;
}

/** Everybody who reads a stream now. A key that was revoked, or has expired, ends its streams within a moment. */
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
      throw new Refusal('too_many', 'There are too many readers.', { hint: 'Try again when others have left.' });
    }
    if (own >= Math.ceil(most / 2)) {
      throw new Refusal('too_many', `There are ${own} readers for "${owner}" already: half of all that there may be.`, {
        hint: 'Close some; one stream of /v1/events tells of every conversation.',
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

  /** Each key or cookie is looked at once, however many read by it. */
  async #check(): Promise<void> {
    const byProof = Map.groupBy(this.#open, ({ principal }) => principal.proof);
    for (const readers of byProof.values()) {
      // A database that cannot be read just now is no reason to send anybody away.
      const isValid = await readers[0]?.principal.stillValid().catch(() => true);
      if (!isValid) for (const { stop } of readers) stop.abort();
    }
  }
}
