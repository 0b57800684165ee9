import { type Principal, unauthenticated } from '../access/authenticate.ts';
import { Refusal } from '../refusal.ts';

interface ReadersOptions {
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

export type Waiting = <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** All open streams, and requests that wait. When a key is revoked or expires, its streams and requests end within a second. */
export class Readers {
  readonly #options: ReadersOptions;
  readonly #open = new Set<Reader>();
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
    const own = [...this.#open].filter((reader) => reader.principal.owner === owner).length;
    if (this.#open.size >= most) {
      throw new Refusal('too_many', 'The server has too many readers.', { hint: 'Try again later.' });
    }
    if (own >= Math.ceil(most / 2)) {
      throw new Refusal('too_many', `"${owner}" already has ${own} readers: half of all that this server allows.`, {
        hint: 'Close some. One stream of /v1/streams follows many conversations.',
      });
    }
    const reader = { principal, stop: new AbortController() };
    this.#open.add(reader);
    if (shutdown.aborted) reader.stop.abort();
    this.#checks ??= setInterval(() => void this.#check(), checkMs).unref();
    return reader;
  }

  /** Work that waits counts as a reader while it does. Throws `too_many`, and `unauthenticated` when the credentials end. */
  async waiting<T>(
    principal: Principal,
    signals: readonly AbortSignal[],
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const reader = this.come(principal);
    const { signal } = reader.stop;
    try {
      return await work(AbortSignal.any([signal, ...signals]));
    } catch (error) {
      throw signal.reason instanceof Refusal ? signal.reason : error;
    } finally {
      this.leave(reader);
    }
  }

  leave(reader: Reader): void {
    this.#open.delete(reader);
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
      if (!isValid) for (const { stop } of readers) stop.abort(unauthenticated());
    }
  }
}
