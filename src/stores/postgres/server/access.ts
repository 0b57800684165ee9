import { isDamage, isTransientFault, ThroughlineError, whileWaiting } from '../../../core/errors.ts';
import type { Reason } from '../../../core/health.ts';
import { given } from '../../../core/input/arguments.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Health } from '../../../ports/health.ts';
import type { StoreConnections } from '../../../ports/store/census.ts';
import { CommitTimes } from '../../shared/commit-times.ts';
import type { News } from '../../shared/news.ts';
import { sharedTransaction } from './batch.ts';
import type { Bell } from './bell.ts';
import type { Server, Sql } from './connect.ts';
import { isCollision, isEnded, isLockedOut, type LongRead, storageFault, tooSlow } from './faults.ts';
import { HeavyWork } from './heavy-work.ts';
import { Reader } from './reader.ts';
import { LONG, ownTransaction, TIME, type Times, type Tx, type Waits } from './transaction.ts';
import { WriteQueue } from './write-queue.ts';

export { LONG, type Tx };

export interface AccessOptions {
  /** The clock of tests. Left out: the database's. */
  readonly clock?: Clock;
  readonly health?: Health;
  /** How often to look for changes that were not announced. */
  readonly pollMs: number;
  /** How long a search may take; left out: 10 seconds. */
  readonly searchMs?: number;
  /** How long a verb waits for a lock of another one; left out: 5 seconds. */
  readonly lockMs?: number;
}

/** How often a transaction is run again that collided with another one. */
const TRIES = 8;
/** Writes a row without changing it. */
const TOUCH = "UPDATE facts SET value = value WHERE owner = '' AND name = 'log'";
/** How often to look whether it can be written again. */
const TRY_MS = 1_000;
const SEARCH_MS = 10_000;
/** How long the check of one table may take. */
const INSPECT_MS = 60_000;
/** Reported until the process ends: a database that was damaged once is not trusted again. */
const DAMAGED: Reason = {
  code: 'storage_damaged',
  message: 'A part of the database is damaged. Conversations in it cannot be read or continued; all others still work.',
  hint: '"throughline doctor" says what is damaged. Restore a backup of the database; see docs/deploy.md.',
  unready: false,
};

/** How the verbs of a store reach the database, until it is closed. */
export class Access {
  readonly sql: Sql;
  readonly bell: Bell;
  readonly commitTimes = new CommitTimes();
  readonly #server: Server;
  readonly #options: AccessOptions;
  readonly #reader: Reader;
  readonly #heavy: HeavyWork;
  readonly #queue: WriteQueue;
  #closing: Promise<void> | null = null;
  #isWritable = true;
  #trying: NodeJS.Timeout | null = null;

  constructor(server: Server, bell: Bell, options: AccessOptions) {
    this.#server = server;
    this.#options = options;
    this.bell = bell;
    this.#reader = new Reader(server);
    this.#queue = new WriteQueue({
      shared: (verbs) =>
        this.#watched(
          async () => {
            const began = performance.now();
            const { outcomes, news } = await sharedTransaction(server, verbs, (at) => this.#times(at), this.#waits());
            if (news !== null) this.#committed(performance.now() - began, news);
            for (const outcome of outcomes) if (outcome.is === 'refused') this.#fault(outcome.error);
            return outcomes;
          },
          (outcomes) => outcomes.some(({ is }) => is === 'done'),
        ),
      own: (verb, waits) => this.#durable(verb, waits),
    });
    this.sql = server.sql;
    for (const sql of [this.sql, this.#reader.sql]) sql.onDamage = () => this.#isDamaged();
    this.#heavy = new HeavyWork(server.connections.most);
  }

  /** Each statement sees what is committed when it begins. */
  read<T>(look: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#readOn(this.sql, look);
  }

  /** The same for short reads that turns need. Reads of many callers are sent as one statement (reader.ts). */
  look<T>(look: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#readOn(this.#reader.sql, look);
  }

  async #readOn<T>(sql: Sql, look: (sql: Sql) => Promise<T>): Promise<T> {
    this.checkOpen();
    try {
      return await look(sql);
    } catch (error) {
      throw this.#fault(error);
    }
  }

  /** The error for the caller. */
  #fault(error: unknown): unknown {
    const fault = storageFault(error) ?? error;
    if (isDamage(fault)) this.#isDamaged();
    return fault;
  }

  /** Resolves with the verb's result once it is durable. A verb that throws changes nothing. */
  async write<T>(verb: (tx: Tx) => Promise<T>, waits?: Waits): Promise<T> {
    this.checkOpen();
    return this.#durable(async (tx) => {
      await tx.begun;
      return verb(tx);
    }, waits);
  }

  #durable<T>(verb: (tx: Tx) => Promise<T>, waits?: Waits): Promise<T> {
    return this.#watched(() => this.#again(verb, this.#waits(waits)));
  }

  #waits(waits: Waits = {}): Waits {
    return { ...given({ lockMs: this.#options.lockMs }), ...waits };
  }

  /** Reports to health whether the database can be written. `isWritten`: whether a result proves that it can. */
  async #watched<T>(work: () => Promise<T>, isWritten: (value: T) => boolean = () => true): Promise<T> {
    try {
      const value = await work();
      if (isWritten(value)) this.#works();
      return value;
    } catch (error) {
      const fault = this.#fault(error);
      if (isTransientFault(fault)) this.#fails(fault);
      throw fault;
    }
  }

  /**
   * The same for a verb of one conversation. Those of this process run in the order in which they were called, and share transactions with verbs of
   * other conversations, unless `alone` is given: then the verb has its own transaction and these time limits. The verb is called at once: its first
   * statement is sent together with the beginning of the transaction.
   */
  async writeIn<T>(conversation: string, verb: (tx: Tx) => Promise<T>, alone?: Waits): Promise<T> {
    this.checkOpen();
    return this.#queue.write(conversation, verb, alone);
  }

  async #again<T>(verb: (tx: Tx) => Promise<T>, waits: Waits): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        const began = performance.now();
        const { value, news } = await ownTransaction(this.#server, verb, (time) => this.#times(time), waits);
        if (waits.readMs === undefined) this.#committed(performance.now() - began, news);
        return value;
      } catch (error) {
        if (!isCollision(error) || tries >= TRIES) throw error;
      }
    }
  }

  #committed(ms: number, news: News): void {
    this.commitTimes.add(ms);
    this.bell.notify(news);
  }

  #times(database: number): Times {
    const { clock } = this.#options;
    if (clock !== undefined) return { now: clock.now(), monotonic: clock.monotonic() };
    return { now: Math.floor(database), monotonic: database };
  }

  /** The time of the clock of tests; null: the time of the database is used. */
  get fixedTime(): Times | null {
    return this.#options.clock === undefined ? null : this.#times(0);
  }

  /** The time of the store, for verbs that only read. */
  async times(sql: Sql): Promise<Times> {
    if (this.#options.clock !== undefined) return this.#times(0);
    return this.#times((await sql.one<{ time: number }>(TIME))?.time ?? 0);
  }

  /** A verb of the store from a function that only reads. */
  reading<A extends unknown[], T>(look: (sql: Sql, ...args: A) => Promise<T>): (...args: A) => Promise<T> {
    return (...args) => this.read((sql) => look(sql, ...args));
  }

  /** The same for short reads that turns need. */
  looking<A extends unknown[], T>(look: (sql: Sql, ...args: A) => Promise<T>): (...args: A) => Promise<T> {
    return (...args) => this.look((sql) => look(sql, ...args));
  }

  /** A verb of the store from a function that writes. */
  writing<A extends unknown[], T>(verb: (tx: Tx, ...args: A) => Promise<T>): (...args: A) => Promise<T> {
    return (...args) => this.write((tx) => verb(tx, ...args));
  }

  /** The same for one that only reads and takes long: it waits for one of a few connections (`HeavyWork`). */
  heavyReading<A extends unknown[], T>(what: LongRead, look: (sql: Sql, owner: string, ...args: A) => Promise<T>) {
    return (owner: string, ...args: A): Promise<T> => this.readLong(what, owner, (sql) => look(sql, owner, ...args));
  }

  /** In one transaction. The server ends a statement that takes too long: `too_large`. */
  async readLong<T>(what: LongRead, owner: string, look: (sql: Sql) => Promise<T>): Promise<T> {
    const readMs = this.#options.searchMs ?? SEARCH_MS;
    try {
      return await this.readRaw(look, owner, readMs);
    } catch (error) {
      throw isEnded(error) ? tooSlow(what, readMs) : this.#fault(error);
    }
  }

  /** The same with the faults as the server gives them. */
  async readRaw<T>(look: (sql: Sql) => Promise<T>, owner = '', readMs = INSPECT_MS): Promise<T> {
    this.checkOpen();
    return this.#heavy.run(owner, () => this.#again(({ sql }) => this.#looking(sql, look), { ...LONG, readMs }));
  }

  #looking<T>(sql: Sql, look: (sql: Sql) => Promise<T>): Promise<T> {
    sql.onDamage = () => this.#isDamaged();
    return look(sql);
  }

  heavyWriting<A extends unknown[], T>(verb: (tx: Tx, owner: string, ...args: A) => Promise<T>) {
    return (owner: string, ...args: A): Promise<T> =>
      this.#heavy.run(owner, () => this.write((tx) => verb(tx, owner, ...args), LONG));
  }

  get connections(): StoreConnections {
    return this.#server.connections;
  }

  checkOpen(): void {
    if (this.#closing !== null) throw new ThroughlineError('closed', 'Throughline is closed.');
  }

  /** Ends what runs, and closes. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#stopTrying();
      await this.#queue.drained();
      await this.bell.close();
      await this.#server.pool.end();
    })();
    return this.#closing;
  }

  #fails(fault: ThroughlineError): void {
    // A lock concerns one conversation, or a few. The others can be written.
    if (isLockedOut(fault)) return;
    const { code, message, hint = '' } = whileWaiting(fault);
    // A database that cannot be written can often still be read.
    this.#options.health?.report('writing', { code, message, hint, unready: code === 'storage_busy' });
    // Without work nothing would be written, so we try it now and then. Not on a full disk: there a small change may succeed, which proves nothing.
    if (code !== 'storage_full') this.#trying ??= setInterval(() => this.#try(), TRY_MS).unref();
    this.#isWritable = false;
  }

  #isDamaged(): void {
    this.#options.health?.report('damage', DAMAGED);
  }

  #try(): void {
    void this.#durable(async ({ sql }) => sql.run(TOUCH)).catch(() => {});
  }

  #works(): void {
    if (this.#isWritable) return;
    this.#isWritable = true;
    this.#stopTrying();
    this.#options.health?.report('writing', null);
  }

  #stopTrying(): void {
    if (this.#trying !== null) clearInterval(this.#trying);
    this.#trying = null;
  }
}
