import type { ThroughlineError } from '../../../core/errors.ts';
import type { Database } from '../file/database.ts';
import { DataFile } from './data-file.ts';
import { HighWater, type MarkedEvent } from './high-water.ts';
import { countChange, logId } from './losses.ts';

/** What a transaction has changed. */
interface Changed {
  readonly events: readonly MarkedEvent[];
  /** There may be events as well. */
  readonly changedOtherwise: boolean;
}

/**
 * Makes sure that what is acknowledged can be found again: no commit is acknowledged into a file that is no longer at its path, and
 * each is in the high-water mark right afterwards.
 */
export class CommitWatch {
  readonly #db: Database;
  readonly #file: DataFile;
  readonly #highWater: HighWater | null;
  /** The number of a commit without an event; null: it has events, or has changed nothing. */
  #change: number | null = null;
  /** What the high-water mark does not have yet. */
  readonly #toMark: ((mark: HighWater) => void)[] = [];

  constructor(db: Database, file: string) {
    this.#db = db;
    this.#file = new DataFile(file);
    this.#highWater = HighWater.open(file);
    this.#highWater?.follow(logId(db));
  }

  /** Before a transaction begins. Throws `storage_gone`: then nothing was written. */
  beforeTransaction(): void {
    this.#look();
  }

  /** At the end of the transaction, inside it. A commit without an event gets a number as well. */
  beforeCommit({ events, changedOtherwise }: Changed): void {
    this.#change = events.length === 0 && changedOtherwise ? countChange(this.#db) : null;
  }

  /** After the commit, and before it is acknowledged. Throws `storage_gone`: it is unknown whether the commit will be found again. */
  committed({ events }: Changed): void {
    const change = this.#change;
    if (change !== null) this.#markSoon((mark) => mark.changed(change));
    else if (events.length > 0) this.#markSoon((mark) => mark.committed(events));
    this.#look();
  }

  /** Null: the files are where they were. */
  fault(): ThroughlineError | null {
    return this.#file.fault();
  }

  close(): void {
    this.#raise();
    this.#highWater?.close();
  }

  /** Those who waited for the commit, and readers, continue first: the write takes several times as long as both looks. */
  #markSoon(write: (mark: HighWater) => void): void {
    if (this.#toMark.length === 0) queueMicrotask(() => setImmediate(() => this.#raise()));
    this.#toMark.push(write);
  }

  #raise(): void {
    for (const write of this.#toMark.splice(0)) if (this.#highWater !== null) write(this.#highWater);
  }

  #look(): void {
    const fault = this.#file.fault();
    if (fault !== null) throw fault;
  }
}
