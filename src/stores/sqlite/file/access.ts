import { ThroughlineError } from '../../../core/errors.ts';
import type { Clock } from '../../../ports/clock.ts';
import { Bell } from './bell.ts';
import type { Database } from './database.ts';
import { storageFault, whileBusy } from './faults.ts';
import { type Tx, WriteQueue } from './write-queue.ts';

export interface AccessOptions {
  readonly file: string;
  readonly clock: Clock;
  readonly busyMs: number;
}

/** How the verbs of a store reach the open database: reads at once, writes through the queue, until it is closed. */
export class Access {
  readonly queue: WriteQueue;
  readonly bell: Bell;
  readonly clock: Clock;
  readonly #db: Database;
  readonly #busyMs: number;
  #closing: Promise<void> | null = null;

  constructor(db: Database, { file, clock, busyMs }: AccessOptions) {
    this.#db = db;
    this.#busyMs = busyMs;
    this.clock = clock;
    this.bell = new Bell(`${file}.bell`, db, () => clock.monotonic());
    this.queue = new WriteQueue(db, { busyMs, clock, committed: (news) => this.bell.notify(news) });
  }

  async read<T>(look: (db: Database) => T): Promise<T> {
    try {
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
    return this.queue.write(verb);
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
    this.#closing ??= this.queue.drained().then(() => {
      this.bell.close();
      this.#db.close();
    });
    return this.#closing;
  }
}
