import { isDamage, ThroughlineError } from '../../../core/errors.ts';
import type { Clock } from '../../../ports/clock.ts';
import { CommitTimes } from '../../shared/commit-times.ts';
import { News } from '../../shared/news.ts';
import type { CommitWatch } from '../loss/commit-watch.ts';
import type { MarkedEvent } from '../loss/high-water.ts';
import type { Database } from './database.ts';
import { isBusy, storageFault, whileBusy } from './faults.ts';
import { checkStillOurs } from './upgrade.ts';

/*
 * Group commit: verbs that write wait here, and all that wait run in one transaction, so that they share one fsync.
 *
 *   idle ──write──▶ scheduled (shortly after a commit: until the end of this turn of the event loop, to collect more verbs; for a
 *                    conversation that is held here, while it alone writes, only until the pending microtasks have run)
 *        ──▶ begin  (locked by another process: wait without blocking; more verbs collect)
 *        ──▶ run all verbs ──▶ commit ──▶ resolve their promises ──▶ idle, or scheduled again
 *             └─ each of several in its own savepoint: one that throws changes nothing
 *
 * From BEGIN to COMMIT nothing else runs in this process: readers on the same connection never see half a batch.
 */

/** What a verb gets, inside its transaction. */
export interface Tx {
  readonly db: Database;
  /** Wall time; and monotonic time, for leases. */
  readonly now: number;
  readonly monotonic: number;
  /**
   * Reports that a conversation or task has changed. `event`: its new event; null: it changed without one. `own`: the holder of the
   * lease wrote it.
   */
  moved(conversation: string, event: NewEvent | null, own?: boolean): void;
}

type NewEvent = Omit<MarkedEvent, 'conversation'>;

interface Waiting {
  readonly verb: (tx: Tx) => unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  /** The conversation whose turn waits for this; undefined: none does. */
  readonly turnOf: string | undefined;
  /** In a transaction of its own. */
  alone?: boolean;
}

/** A batch takes no more verbs after this long, so that it does not block the event loop. */
const BATCH_MS = 10;
/** After a commit this recent, more writes are likely to come at once. */
const BUSY_MS = 5;

interface QueueOptions {
  readonly busyMs: number;
  readonly clock: Clock;
  readonly watch: () => CommitWatch;
  readonly committed: (news: BatchNews) => void;
  /** A fault of the storage: nothing of a batch was written. */
  readonly refused: (fault: ThroughlineError) => void;
}

export class WriteQueue {
  readonly #db: Database;
  readonly #options: QueueOptions;
  #waiting: Waiting[] = [];
  #drain: Promise<void> | null = null;
  #committedAt = Number.NEGATIVE_INFINITY;
  /** The only conversation that recent commits have changed; null: they changed several, or none. */
  #onlyWriter: string | null = null;
  /** Each with its fsync. */
  readonly commitTimes = new CommitTimes();

  constructor(db: Database, options: QueueOptions) {
    this.#db = db;
    this.#options = options;
  }

  /** Resolves with the verb's result once it is durable. A verb that throws changes nothing. `turnOf`: the conversation whose turn waits. */
  write<T>(verb: (tx: Tx) => T, turnOf?: string): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ verb, resolve: resolve as (value: never) => void, reject, turnOf });
      this.#drain ??= this.#run();
    });
  }

  /** How many transactions were committed, for tests and measurements. */
  get commits(): number {
    return this.commitTimes.count;
  }

  /** Resolves when nothing waits any more. */
  async drained(): Promise<void> {
    while (this.#drain !== null) await this.#drain;
  }

  async #run(): Promise<void> {
    for (let isFirst = true; this.#waiting.length > 0; isFirst = false) {
      await this.#collected(isFirst);
      try {
        await whileBusy(() => this.#batch(), this.#options.busyMs);
      } catch (error) {
        // The transaction could not begin, so none of the waiting verbs can run.
        this.#refuse(this.#waiting.splice(0), error);
      }
    }
    this.#drain = null;
  }

  /** Under load, all verbs of this turn of the event loop share a commit. A single verb does not wait. `isFirst`: nobody waited before. */
  async #collected(isFirst: boolean): Promise<void> {
    if (!this.#isBusy) return;
    const { turnOf } = this.#waiting[0] as Waiting;
    const isAlone = isFirst && turnOf !== undefined && turnOf === this.#onlyWriter;
    await new Promise(isAlone ? process.nextTick : setImmediate);
  }

  get #isBusy(): boolean {
    return this.#monotonic() - this.#committedAt < BUSY_MS;
  }

  #noteCommit([writer, ...others]: readonly string[], began: number): void {
    const isOnly = others.length === 0 && (!this.#isBusy || this.#onlyWriter === writer);
    this.#onlyWriter = (isOnly && writer) || null;
    this.#committedAt = this.#monotonic();
    this.commitTimes.add(this.#committedAt - began);
  }

  /** One transaction. Throws only when it cannot begin, may not, or is locked at its commit; then its verbs still wait. */
  #batch(): void {
    this.#rollback();
    const watch = this.#options.watch();
    watch.beforeTransaction();
    const began = this.#monotonic();
    this.#db.run('BEGIN IMMEDIATE');
    const taken: Waiting[] = [];
    const news = new BatchNews();
    try {
      checkStillOurs(this.#db);
      const answers = this.#verbs(taken, news);
      // The only verb has thrown, and is undone.
      if (this.#db.inTransaction) {
        watch.beforeCommit(news);
        this.#db.run('COMMIT');
        this.#noteCommit(news.ids, began);
        watch.committed(news);
      }
      for (const answer of answers) answer();
    } catch (error) {
      this.#rollback();
      if (isBusy(error) || taken.length === 0) {
        this.#waiting.unshift(...taken);
        throw error;
      }
      if (isDamage(storageFault(error) ?? error) && taken.length > 1) this.#apart(taken);
      else this.#refuse(taken, error);
      return;
    }
    this.#options.committed(news);
  }

  /** One of them met a damaged page, and SQLite writes nothing more in that transaction. The others are not at fault: each gets its own. */
  #apart(taken: Waiting[]): void {
    for (const waiting of taken) waiting.alone = true;
    this.#waiting.unshift(...taken);
  }

  /** Some faults roll back by themselves. If the rollback fails now, it is done before the next transaction. */
  #rollback(): void {
    try {
      if (this.#db.inTransaction) this.#db.run('ROLLBACK');
    } catch {
      // Nothing was committed; that is enough.
    }
  }

  /** Runs what waits. Returns, for each verb, how to answer it after the commit. */
  #verbs(taken: Waiting[], news: BatchNews): (() => void)[] {
    const now = this.#options.clock.now();
    const monotonic = this.#monotonic();
    const answers: (() => void)[] = [];
    const fits = () =>
      taken.length === 0 || (!taken[0]?.alone && !this.#waiting[0]?.alone && this.#monotonic() - monotonic < BATCH_MS);
    const isOne = this.#waiting.length === 1;
    while (this.#waiting.length > 0 && fits()) {
      const waiting = this.#waiting.shift() as Waiting;
      taken.push(waiting);
      const run = { db: this.#db, now, monotonic };
      answers.push(isOne ? this.#alone(waiting, run, news) : this.#inSavepoint(waiting, run, news));
    }
    return answers;
  }

  #refuse(all: readonly Waiting[], error: unknown): void {
    const reason = error instanceof ThroughlineError ? error : (storageFault(error) ?? error);
    if (reason instanceof ThroughlineError) this.#options.refused(reason);
    for (const waiting of all) waiting.reject(reason);
  }

  #monotonic(): number {
    return this.#options.clock.monotonic();
  }

  /** An error of the verb undoes only that verb. A storage fault concerns the whole transaction, and is thrown. */
  #inSavepoint(waiting: Waiting, run: Omit<Tx, 'moved'>, news: BatchNews): () => void {
    this.#db.run('SAVEPOINT verb');
    try {
      const answer = this.#call(waiting, run, news);
      this.#db.run('RELEASE verb');
      return answer;
    } catch (error) {
      this.#throwFault(error);
      this.#db.run('ROLLBACK TO verb');
      this.#db.run('RELEASE verb');
      return () => waiting.reject(error);
    }
  }

  /** The same for the only verb of a transaction: that is undone as a whole. */
  #alone(waiting: Waiting, run: Omit<Tx, 'moved'>, news: BatchNews): () => void {
    try {
      return this.#call(waiting, run, news);
    } catch (error) {
      this.#throwFault(error);
      this.#db.run('ROLLBACK');
      return () => waiting.reject(error);
    }
  }

  #call({ verb, resolve }: Waiting, run: Omit<Tx, 'moved'>, news: BatchNews): () => void {
    const moves: Parameters<Tx['moved']>[] = [];
    const before = this.#db.changes;
    const value = verb({ ...run, moved: (...move) => void moves.push(move) });
    for (const move of moves) news.moved(...move);
    if (news.events.length === 0 && this.#db.changes !== before) news.changedOtherwise = true;
    return () => resolve(value as never);
  }

  #throwFault(error: unknown): void {
    if (storageFault(error) !== null || isDamage(error) || !this.#db.inTransaction) throw error;
  }
}

/** What a committed batch has changed. */
export class BatchNews extends News {
  /** The events written. Their numbers in the table are consecutive. */
  readonly events: MarkedEvent[] = [];
  /** Rows were changed before there was an event. */
  changedOtherwise = false;

  moved(conversation: string, event: NewEvent | null, own?: boolean): void {
    this.add(conversation, own);
    if (event !== null) this.events.push({ ...event, conversation });
  }
}
