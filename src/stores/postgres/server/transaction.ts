import { ThroughlineError } from '../../../core/errors.ts';
import { News } from '../../shared/news.ts';
import { PLAN_FREELY } from '../plans.ts';
import { OwnSql, type Server, type TxSql, type Value } from './connect.ts';
import { storageFault } from './faults.ts';

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
  /** Verbs of other conversations are in the same transaction: what this one writes is sent after all of them have read (write-queue.ts). */
  readonly isShared: boolean;
  /** A verb calls this before it reads what it has written, and before it waits for a lock: it then starts again in a transaction of its own. */
  alone(): void;
  /**
   * Adds to a row that many transactions add to. It is sent right before the commit, so that they wait for each other only during the commit. What
   * is added to the same row is sent once, and rows in the order of their keys, so that two transactions do not deadlock.
   */
  last<T>(sum: Sum<T>): void;
  /** Reports that a conversation or task has changed. `own`: the holder of the lease wrote it. */
  moved(id: string, own?: boolean): void;
}

/** An amount for the row with this key. The values of the statement are the key, and then those of the amount. */
export interface Sum<T> {
  readonly text: string;
  readonly key: readonly string[];
  readonly amount: T;
  readonly add: (a: T, b: T) => T;
  readonly values: (amount: T) => readonly Value[];
  /** Locks the row of the key first, so that the statement sees what was committed before. */
  readonly lock?: string;
}

/** The verb cannot share its transaction with others. */
export class Apart extends Error {}

export type Times = Pick<Tx, 'now' | 'monotonic'>;

export const TIME = 'SELECT extract(epoch FROM clock_timestamp()) * 1000 AS time';

/** How long a transaction may wait. */
export interface Waits {
  /** For a lock that another one holds. Shorter than for an answer: a connection that gives none is ended. */
  readonly lockMs?: number;
  /** For the answer to a statement. */
  readonly answerMs?: number;
  /** Given: it only reads, and the server ends a statement that takes longer. */
  readonly readMs?: number;
}

/**
 * The statements that begin a transaction, in one message. A process that is cut off in the middle of a transaction holds its locks: PostgreSQL ends that transaction sooner than a lease ends,
 * so that another process can take over.
 */
export function beginningOf({ lockMs = LOCK_MS, readMs }: Waits): string {
  const reads = `BEGIN READ ONLY; SET LOCAL statement_timeout = ${Math.ceil(readMs ?? 0)}; ${PLAN_FREELY}`;
  const begin = readMs === undefined ? 'BEGIN' : reads;
  const waits = `SET LOCAL idle_in_transaction_session_timeout = '10s'; SET LOCAL lock_timeout = ${Math.ceil(lockMs)}`;
  return `${begin}; ${waits}; ${TIME}`;
}

const LOCK_MS = 5_000;
/** Long work may wait for longer: it has its own few connections (`HeavyWork`). */
export const LONG: Waits = { lockMs: 60_000, answerMs: 600_000 };

/** The beginning of a transaction. It is sent, and the next statement follows at once: the answers come in the same order. */
export class Beginning {
  readonly ended: Promise<void>;
  #times: Times | null = null;
  #fault: unknown = null;

  constructor(answer: Promise<unknown>, times: (database: number) => Times) {
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
    // It is thrown to the caller that waits for it. Without a handler it would end the process.
    this.ended.catch(() => {});
  }

  /** Throws the fault of the beginning, if it has failed. */
  check(): void {
    if (this.#fault !== null) throw this.#fault;
  }

  get times(): Times {
    this.check();
    if (this.#times === null) throw new Error('The time is not known before the first answer of the database.');
    return this.#times;
  }

  get now(): number {
    return this.times.now;
  }

  get monotonic(): number {
    return this.times.monotonic;
  }
}

/** The sums of a transaction, one for each row, in the order of their keys. */
export function summed(sums: readonly Sum<unknown>[]): { readonly text: string; readonly values: readonly Value[] }[] {
  const rows = new Map<string, Sum<unknown>>();
  for (const sum of sums) {
    const name = JSON.stringify([sum.text, sum.key]);
    const known = rows.get(name);
    rows.set(name, known === undefined ? sum : { ...sum, amount: sum.add(known.amount, sum.amount) });
  }
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.flatMap(([, { text, lock, key, amount, values }]) => [
    ...(lock === undefined ? [] : [{ text: lock, values: key }]),
    { text, values: [...key, ...values(amount)] },
  ]);
}

/** The error of a transaction whose connection is broken: that of the verb or of the storage, otherwise that of the connection. */
export function faultOfBroken(fault: unknown, broken: Error | true): unknown {
  return fault instanceof ThroughlineError || storageFault(fault) !== null ? fault : broken;
}

/** Runs a verb in a transaction of its own. A verb that throws changes nothing. */
export async function ownTransaction<T>(
  server: Server,
  verb: (tx: Tx) => Promise<T>,
  times: (database: number) => Times,
  waits: Waits,
): Promise<{ value: T; news: News }> {
  const client = await server.take();
  const news = new News();
  const send = (text: string, values?: unknown[]) => server.query(client, text, values, waits.answerMs);
  const beginning = new Beginning(send(beginningOf(waits)), times);
  const sql = new OwnSql((text, values) => {
    // If BEGIN failed, each statement would be a transaction of its own.
    beginning.check();
    return send(text, values);
  });
  const sums: Sum<unknown>[] = [];
  const tx: Tx = {
    ...{ sql, begun: beginning.ended, isShared: false, alone: () => {}, moved: news.add },
    get now() {
      return beginning.now;
    },
    get monotonic() {
      return beginning.monotonic;
    },
    last: (sum) => void sums.push(sum as Sum<unknown>),
  };
  let broken: Error | boolean = false;
  try {
    const value = await verb(tx);
    await beginning.ended;
    for (const { text, values } of summed(sums)) sql.run(text, ...values);
    // Sent right after the verb's last statements, without waiting for their answers. If one of them fails, COMMIT commits nothing.
    const committed = send('COMMIT');
    committed.catch(() => {});
    await sql.allAnswered();
    await committed;
    return { value, news };
  } catch (error) {
    const first = await beginning.ended.then(
      () => error,
      (fault: unknown) => fault,
    );
    // If even ROLLBACK fails, the connection is not used again.
    await send('ROLLBACK').catch((fault: Error) => {
      broken = fault;
    });
    // After the first fault, all others only say that the transaction is broken.
    await sql.allAnswered();
    throw broken === false ? first : faultOfBroken(first, broken);
  } finally {
    client.release(broken);
  }
}
