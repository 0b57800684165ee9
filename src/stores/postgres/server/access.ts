import { isTransientFault, ThroughlineError, whileWaiting } from '../../../core/errors.ts';
import { given } from '../../../core/input/arguments.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Health } from '../../../ports/health.ts';
import type { StoreConnections } from '../../../ports/store/census.ts';
import { type Bell, News } from './bell.ts';
import { type Server, type Sql, TxSql, type Value } from './connect.ts';
import { isCollision, isEnded, isLockedOut, storageFault, tooSlow } from './faults.ts';
import { HeavyWork } from './heavy-work.ts';
import { Reader } from './reader.ts';

/** What a verb gets, inside its transaction. */
export interface Tx {
  readonly sql: TxSql;
  /**
   * Wall time; and the time that leases are measured in. Both are the database's: servers may have other clocks. In a verb of one conversation
   * (`writeIn`) they are known with the first answer of the database, or when `begun` resolves.
   */
  readonly now: number;
  readonly monotonic: number;
  /** Until then the times are not known. Before that, a verb may send only statements that read. */
  readonly begun: Promise<void>;
  /**
   * A statement that is sent right before the commit, for a row that many transactions change: they wait for each other only until that commit.
   * In one transaction, such statements are sent in the order of their values, so that two do not wait for each other in a circle.
   */
  last(text: string, ...values: Value[]): void;
  /** Reports that a conversation or task has changed. `own`: the holder of the lease wrote it. */
  moved(id: string, own?: boolean): void;
}

export interface AccessOptions {
  /** The clock of tests. Left out: the database's. */
  readonly clock?: Clock;
  readonly health?: Health;
  /** How often to look whether anything changed that nobody told of. */
  readonly pollMs: number;
  /** How long a search may take; left out: 10 seconds. */
  readonly searchMs?: number;
  /** How long a verb waits for a lock of another one; left out: 5 seconds. */
  readonly lockMs?: number;
}

const TIME = 'SELECT extract(epoch FROM clock_timestamp()) * 1000 AS time';

/** How long a transaction may wait. */
interface Waits {
  /** For a lock that another one holds. Shorter than for an answer: a connection that gives none is ended. */
  readonly lockMs?: number;
  /** For the answer to a statement. */
  readonly answerMs?: number;
  /** Given: it only reads, and the server ends a statement that takes longer. */
  readonly readMs?: number;
}

/**
 * One message for all of them. A server that is cut off in the middle of a transaction holds its locks: PostgreSQL ends it in less time than
 * a lease takes, so that another server can take over.
 */
function beginning({ lockMs = LOCK_MS, readMs }: Waits): string {
  const begin = readMs === undefined ? 'BEGIN' : `BEGIN READ ONLY; SET LOCAL statement_timeout = ${Math.ceil(readMs)}`;
  const waits = `SET LOCAL idle_in_transaction_session_timeout = '10s'; SET LOCAL lock_timeout = ${Math.ceil(lockMs)}`;
  return `${begin}; ${waits}; ${TIME}`;
}

const LOCK_MS = 5_000;
/** What is long may wait for longer: it has few connections, and nobody else waits for them. */
export const LONG: Waits = { lockMs: 60_000, answerMs: 600_000 };
/** How often a transaction is run again that collided with another one. */
const TRIES = 8;
/** Changes nothing, but is written. */
const TOUCH = "UPDATE facts SET value = value WHERE owner = '' AND name = 'log'";
/** How often to look whether it can be written again. */
const TRY_MS = 1_000;
/** How many transactions the latency is measured over. */
const MEASURED = 256;
const SEARCH_MS = 10_000;

/** The beginning of a transaction, which is sent and not waited for: its answer comes before that of the first statement. */
class Beginning {
  readonly ended: Promise<void>;
  #times: Pick<Tx, 'now' | 'monotonic'> | null = null;
  #fault: unknown = null;

  constructor(answer: Promise<unknown>, times: (database: number) => Pick<Tx, 'now' | 'monotonic'>) {
    this.ended = answer.then(
      (results) => {
        const last = (results as { rows: { time: number }[] }[]).at(-1);
        this.#times = times(last?.rows[0]?.time ?? 0);
      },
      (fault: unknown) => {
        this.#fault = fault;
        throw fault;
      },
    );
    // Whoever waits for it hears of it; until then it is nobody's.
    this.ended.catch(() => {});
  }

  /** Throws its fault, once that is known. */
  check(): void {
    if (this.#fault !== null) throw this.#fault;
  }

  get times(): Pick<Tx, 'now' | 'monotonic'> {
    this.check();
    if (this.#times === null) throw new Error('The time is not known before the first answer of the database.');
    return this.#times;
  }
}

/** How the verbs of a store reach the database, until it is closed. */
export class Access {
  readonly sql: Sql;
  readonly bell: Bell;
  readonly #server: Server;
  readonly #options: AccessOptions;
  readonly #reader: Reader;
  readonly #heavy: HeavyWork;
  readonly #took = new Float64Array(MEASURED);
  /** Of each conversation that is written: the end of what was asked for last. */
  readonly #running = new Map<string, Promise<void>>();
  #closing: Promise<void> | null = null;
  #isWritable = true;
  #trying: NodeJS.Timeout | null = null;
  commits = 0;

  constructor(server: Server, bell: Bell, options: AccessOptions) {
    this.#server = server;
    this.#options = options;
    this.bell = bell;
    this.#reader = new Reader(server);
    this.sql = server.sql;
    this.#heavy = new HeavyWork(server.connections.most);
  }

  /** Each statement sees what is committed when it begins. */
  read<T>(look: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#readOn(this.sql, look);
  }

  /** The same for short reads that turns need: those of many callers are one. */
  look<T>(look: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#readOn(this.#reader.sql, look);
  }

  async #readOn<T>(sql: Sql, look: (sql: Sql) => Promise<T>): Promise<T> {
    this.checkOpen();
    try {
      return await look(sql);
    } catch (error) {
      throw storageFault(error) ?? error;
    }
  }

  /** Resolves with the verb's result once it is durable. A verb that throws changes nothing. */
  async write<T>(verb: (tx: Tx) => Promise<T>, waits?: Waits): Promise<T> {
    this.checkOpen();
    return this.#durable(async (tx) => {
      await tx.begun;
      return verb(tx);
    }, waits);
  }

  async #durable<T>(verb: (tx: Tx) => Promise<T>, waits: Waits = {}): Promise<T> {
    try {
      const value = await this.#again(verb, { ...given({ lockMs: this.#options.lockMs }), ...waits });
      this.#works();
      return value;
    } catch (error) {
      const fault = storageFault(error);
      if (fault !== null) this.#fails(fault);
      throw fault ?? error;
    }
  }

  /**
   * The same for a verb of one conversation. Those of this process run in the order in which they were called, and do not keep several
   * connections waiting for one row. The verb is called at once: its first statement is sent together with the beginning of the transaction.
   */
  async writeIn<T>(conversation: string, verb: (tx: Tx) => Promise<T>, waits?: Waits): Promise<T> {
    this.checkOpen();
    const before = this.#running.get(conversation) ?? Promise.resolve();
    const value = before.then(() => this.#durable(verb, waits));
    const ended = value.then(
      () => {},
      () => {},
    );
    this.#running.set(conversation, ended);
    void ended.then(() => {
      if (this.#running.get(conversation) === ended) this.#running.delete(conversation);
    });
    return value;
  }

  async #again<T>(verb: (tx: Tx) => Promise<T>, waits: Waits): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#transaction(verb, waits);
      } catch (error) {
        if (!isCollision(error) || tries >= TRIES) throw error;
      }
    }
  }

  async #transaction<T>(verb: (tx: Tx) => Promise<T>, waits: Waits): Promise<T> {
    const client = await this.#server.take();
    const began = performance.now();
    const news = new News();
    const send = (text: string, values?: unknown[]) => this.#server.query(client, text, values, waits.answerMs);
    const begun = new Beginning(send(beginning(waits)), (time) => this.#times(time));
    const sql = new TxSql((text, values) => {
      // Without a transaction each statement would be one.
      begun.check();
      return send(text, values);
    });
    const last: { readonly order: string; readonly send: () => void }[] = [];
    const tx: Tx = {
      ...{ sql, begun: begun.ended, moved: news.add },
      get now() {
        return begun.times.now;
      },
      get monotonic() {
        return begun.times.monotonic;
      },
      last: (text, ...values) => last.push({ order: JSON.stringify(values), send: () => sql.run(text, ...values) }),
    };
    let broken: Error | boolean = false;
    try {
      const value = await verb(tx);
      await begun.ended;
      for (const { send } of last.sort((a, b) => (a.order < b.order ? -1 : 1))) send();
      // Sent behind the verb's last statements: it takes no time of its own, and after a fault of one of them it commits nothing.
      const committed = send('COMMIT');
      committed.catch(() => {});
      await sql.settled();
      await committed;
      if (waits.readMs === undefined) this.#committed(performance.now() - began, news);
      return value;
    } catch (error) {
      const first = await begun.ended.then(
        () => error,
        (fault: unknown) => fault,
      );
      // A connection on which not even that works is not used again.
      await send('ROLLBACK').catch((fault: Error) => {
        broken = fault;
      });
      // What is said of a statement after the first fault is only that the transaction is broken.
      await sql.settled();
      throw first;
    } finally {
      client.release(broken);
    }
  }

  #committed(ms: number, news: News): void {
    this.#took[this.commits % MEASURED] = ms;
    this.commits += 1;
    this.bell.notify(news);
  }

  #times(database: number): Pick<Tx, 'now' | 'monotonic'> {
    const { clock } = this.#options;
    if (clock !== undefined) return { now: clock.now(), monotonic: clock.monotonic() };
    return { now: Math.floor(database), monotonic: database };
  }

  /** The time of the store, for verbs that only read. */
  async times(sql: Sql): Promise<Pick<Tx, 'now' | 'monotonic'>> {
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
  heavyReading<A extends unknown[], T>(look: (sql: Sql, owner: string, ...args: A) => Promise<T>) {
    return (owner: string, ...args: A): Promise<T> => this.readLong(owner, (sql) => look(sql, owner, ...args));
  }

  /** In one transaction. The server ends a statement that takes too long: `too_large`. */
  async readLong<T>(owner: string, look: (sql: Sql) => Promise<T>): Promise<T> {
    this.checkOpen();
    const readMs = this.#options.searchMs ?? SEARCH_MS;
    try {
      return await this.#heavy.run(owner, () => this.#again(({ sql }) => look(sql), { ...LONG, readMs }));
    } catch (error) {
      throw isEnded(error) ? tooSlow(readMs) : (storageFault(error) ?? error);
    }
  }

  heavyWriting<A extends unknown[], T>(verb: (tx: Tx, owner: string, ...args: A) => Promise<T>) {
    return (owner: string, ...args: A): Promise<T> =>
      this.#heavy.run(owner, () => this.write((tx) => verb(tx, owner, ...args), LONG));
  }

  /** How long recent transactions took; null: none was committed yet. */
  latency(): { readonly p50: number; readonly p95: number; readonly max: number } | null {
    const took = this.#took.slice(0, this.commits).sort();
    const at = (share: number) => took[Math.ceil(took.length * share) - 1] ?? 0;
    return took.length === 0 ? null : { p50: at(0.5), p95: at(0.95), max: at(1) };
  }

  get connections(): StoreConnections {
    return this.#server.connections;
  }

  checkOpen(): void {
    if (this.#closing !== null) throw new ThroughlineError('closed', 'The store is closed.');
  }

  /** Ends what runs, and closes. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#stopTrying();
      await Promise.all(this.#running.values());
      await this.bell.close();
      await this.#server.pool.end();
    })();
    return this.#closing;
  }

  #fails(fault: ThroughlineError): void {
    // A lock is about one conversation, or a few: the others can be written.
    if (!isTransientFault(fault) || isLockedOut(fault)) return;
    const { code, message, hint = '' } = whileWaiting(fault);
    // What only cannot be written can still be read.
    this.#options.health?.report('writing', { code, message, hint, unready: code === 'storage_busy' });
    // A server without work writes nothing. On a full disk a small change may find space, and proves nothing.
    if (code !== 'storage_full') this.#trying ??= setInterval(() => this.#try(), TRY_MS).unref();
    this.#isWritable = false;
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
