import { ThroughlineError } from '../../../core/errors.ts';
import type { Database } from './database.ts';
import { isBusy, storageFault, whileBusy } from './faults.ts';

/*
 * Group commit. Verbs that write wait here; a drain runs all that wait in one transaction, so that they share one fsync.
 *
 *   idle ──write──▶ scheduled (verbs of the same moment gather; just after a commit, those of this turn of the event loop)
 *        ──▶ begin  (locked by another process: wait without blocking, while more verbs gather)
 *        ──▶ all verbs ──▶ commit ──▶ promises resolve ──▶ idle, or scheduled again
 *             └─ one refuses: all is undone, and done again with every verb in a savepoint of its own
 *
 * Refusals are rare, and a savepoint copies every page that is changed after it: so it is not made before it is needed.
 * From BEGIN to COMMIT nothing else runs in this process: readers on the same connection never see half a batch.
 */

/** What a verb has to work with, inside its transaction. */
export interface Tx {
  readonly db: Database;
  /** Wall time, and time for leases. */
  readonly now: number;
  readonly monotonic: number;
  /**
   * Says that a conversation has news: an event with that number in the table, or null for news without one. `own`: the holder of
   * the lease has written it.
   */
  moved(conversation: string, eventNo: number | null, own?: boolean): void;
}

/** What a committed batch changed: for the bell. */
export interface News {
  readonly conversations: readonly string[];
  /** Of these, the ones with nothing but what the holder of the lease has written. */
  readonly own: ReadonlySet<string>;
  /** The events written, first and last number in the table; they are consecutive. Null: none. */
  readonly events: { readonly first: number; readonly last: number } | null;
}

interface Waiting {
  readonly verb: (tx: Tx) => unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** A batch stops taking verbs after this long, so that a flood of them does not keep the event loop from everything else. */
const BATCH_MS = 10;
/** A commit so short ago says that more is being written just now. */
const BUSY_MS = 5;

export interface QueueOptions {
  readonly busyMs: number;
  readonly times: () => { now: number; monotonic: number };
  readonly committed: (news: News) => void;
}

export class WriteQueue {
  readonly #db: Database;
  readonly #options: QueueOptions;
  #waiting: Waiting[] = [];
  #drain: Promise<void> | null = null;
  /** A verb of the batch that waits again has refused: this time each is given its savepoint. */
  #careful = false;
  #committedAt = Number.NEGATIVE_INFINITY;
  /** How many transactions were committed: what tests and measurements count. */
  commits = 0;

  constructor(db: Database, options: QueueOptions) {
    this.#db = db;
    this.#options = options;
  }

  /** Resolves with what the verb returned, once that is durable. A verb that throws changes nothing. */
  write<T>(verb: (tx: Tx) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ verb, resolve: resolve as (value: never) => void, reject });
      this.#drain ??= this.#run();
    });
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Resolves when all that waits now is written or refused. */
  async drained(): Promise<void> {
    while (this.#drain !== null) await this.#drain;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      await this.#gathered();
      try {
        await whileBusy(() => this.#batch(), this.#options.busyMs);
      } catch (error) {
        // The transaction could not be begun: nobody who waits for it can be served.
        refuse(this.#waiting.splice(0), error);
      }
    }
    this.#drain = null;
  }

  /** Where much is written, all that comes in this turn of the event loop shares a commit. A single verb is not kept waiting. */
  async #gathered(): Promise<void> {
    if (performance.now() - this.#committedAt < BUSY_MS) await new Promise(setImmediate);
  }

  /** One transaction. Throws only when it cannot be begun, or is locked out at its commit; then nobody is lost. */
  #batch(): void {
    this.#rollback();
    this.#db.run('BEGIN IMMEDIATE');
    const taken: Waiting[] = [];
    const news = new Newsletter();
    try {
      const results = this.#verbs(taken, news);
      this.#db.run('COMMIT');
      this.commits += 1;
      this.#committedAt = performance.now();
      this.#careful = false;
      for (const [index, result] of results.entries()) answer(taken[index], result);
    } catch (error) {
      this.#rollback();
      if (isBusy(error)) {
        this.#waiting.unshift(...taken);
        throw error;
      }
      if (taken.length > 1 && !this.#careful && storageFault(error) === null) {
        this.#waiting.unshift(...taken);
        this.#careful = true;
        return;
      }
      refuse(taken, error);
      return;
    }
    this.#options.committed(news);
  }

  /** Some faults have undone the transaction already; one that cannot be undone now is undone before the next. */
  #rollback(): void {
    try {
      if (this.#db.inTransaction) this.#db.run('ROLLBACK');
    } catch {
      // Nothing was committed, and that is all that counts here.
    }
  }

  #verbs(taken: Waiting[], news: Newsletter): Result[] {
    const { now, monotonic } = this.#options.times();
    const start = performance.now();
    const results: Result[] = [];
    while (this.#waiting.length > 0 && (taken.length === 0 || performance.now() - start < BATCH_MS)) {
      const waiting = this.#waiting.shift() as Waiting;
      taken.push(waiting);
      const run = { db: this.#db, now, monotonic };
      results.push(
        this.#careful ? this.#apart(waiting, run, news) : { ok: true, value: waiting.verb(noting(run, news)) },
      );
    }
    return results;
  }

  /** A verb's own failure undoes only that verb. A failure of the storage is everybody's, and is thrown. */
  #apart(waiting: Waiting, run: Omit<Tx, 'moved'>, news: Newsletter): Result {
    const own = new Newsletter();
    this.#db.run('SAVEPOINT verb');
    try {
      const value = waiting.verb(noting(run, own));
      this.#db.run('RELEASE verb');
      news.merge(own);
      return { ok: true, value };
    } catch (error) {
      if (storageFault(error) !== null || !this.#db.inTransaction) throw error;
      this.#db.run('ROLLBACK TO verb');
      this.#db.run('RELEASE verb');
      return { ok: false, error };
    }
  }
}

function noting(run: Omit<Tx, 'moved'>, news: Newsletter): Tx {
  return { ...run, moved: (conversation, no, own = false) => news.add(conversation, no, own) };
}

type Result = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown };

function answer(waiting: Waiting | undefined, result: Result): void {
  if (result.ok) waiting?.resolve(result.value as never);
  else waiting?.reject(result.error);
}

function refuse(all: readonly Waiting[], error: unknown): void {
  const reason = error instanceof ThroughlineError ? error : (storageFault(error) ?? error);
  for (const waiting of all) waiting.reject(reason);
}

class Newsletter implements News {
  readonly #conversations = new Set<string>();
  readonly #asked = new Set<string>();
  events: { first: number; last: number } | null = null;

  get conversations(): string[] {
    return [...this.#conversations];
  }

  get own(): ReadonlySet<string> {
    return this.#conversations.difference(this.#asked);
  }

  add(conversation: string, no: number | null, own: boolean): void {
    this.#conversations.add(conversation);
    if (!own) this.#asked.add(conversation);
    if (no !== null) this.events = { first: this.events?.first ?? no, last: no };
  }

  merge(other: Newsletter): void {
    for (const conversation of other.#conversations) this.#conversations.add(conversation);
    for (const conversation of other.#asked) this.#asked.add(conversation);
    if (other.events !== null)
      this.events = { first: this.events?.first ?? other.events.first, last: other.events.last };
  }
}
