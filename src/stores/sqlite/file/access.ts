import { ThroughlineError } from '../../../core/errors.ts';
import type { Clock } from '../../../ports/clock.ts';
import { Bell } from './bell.ts';
import type { Database } from './database.ts';
import { storageFault, whileBusy } from './faults.ts';
import { reopenForWriting } from './open.ts';
import { type Tx, WriteQueue } from './write-queue.ts';

export interface AccessOptions {
  readonly file: string;
  readonly clock: Clock;
  readonly busyMs: number;
  /** This boot of this machine. */
  readonly boot: string;
}

/** How the verbs of a store reach the open database: reads at once, writes through the queue, until it is closed. */
export class Access {
  readonly queue: WriteQueue;
  readonly bell: Bell;
  readonly clock: Clock;
  readonly #db: Database;
  readonly #busyMs: number;
  readonly #options: AccessOptions;
  #reopening: Promise<void> | null = null;
  #closing: Promise<void> | null = null;

  constructor(db: Database, options: AccessOptions) {
    const { file, clock, busyMs } = options;
    this.#db = db;
    this.#busyMs = busyMs;
    this.#options = options;
    this.clock = clock;
    this.bell = new Bell(`${file}.bell`, db, () => clock.monotonic());
    this.queue = new WriteQueue(db, { busyMs, clock, committed: (news) => this.bell.notify(news) });
  }

  async read<T>(look: (db: Database) => T): Promise<T> {
    try {
      // Whoever waits for that writes; a reader needs only its end.
      if (this.#reopening !== null) await this.#reopening.catch(() => {});
      return await whileBusy(() => {
        this.checkOpen();
        return look(this.#db);
      }, this.#busyMs);
    } catch (error) {
      throw storageFault(error) ?? error;
    }
  }

  async write<T>(verb: (tx: Tx) => T): Promise<T> {
    this.checkOpen();
    if (this.#db.onlyReads) await this.#reopen();
    return this.queue.write(verb);
  }

  /** The disk was full when the database was opened; there may be space now. */
  #reopen(): Promise<void> {
    const { file, clock, busyMs, boot } = this.#options;
    this.#reopening ??= reopenForWriting(this.#db, { file, boot, busyMs, monotonic: clock.monotonic() }).finally(() => {
      this.#reopening = null;
    });
    return this.#reopening;
  }

  /** A verb of the store from a function that only reads. */
  reading<A extends unknown[], T>(look: (db: Database, ...args: A) => T): (...args: A) => Promise<T> {
    return (...args) => this.read((db) => look(db, ...args));
  }

  /** A verb of the store from a function that writes. */
  writing<A extends unknown[], T>(verb: (tx: Tx, ...args: A) => T): (...args: A) => Promise<T> {
    return (...args) => this.write((tx) => verb(tx, ...args));
  }

  checkOpen(): void {
    if (this.#closing !== null) throw new ThroughlineError('closed', 'The store is closed.');
  }

  /** Writes what waits, and closes. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.queue.drained().then(async () => {
      await this.#reopening?.catch(() => {});
      this.bell.close();
      this.#db.close();
    });
    return this.#closing;
  }
}
