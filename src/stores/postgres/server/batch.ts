import { isDamage } from '../../../core/errors.ts';
import { News } from '../../shared/news.ts';
import { type PoolClient, type Server, type Statement, TxSql, type Value } from './connect.ts';
import { isCollision, isLockedOut, storageFault } from './faults.ts';
import { type Asked, joined } from './many.ts';
import { sendTogether, sendWrites } from './together.ts';
import {
  Apart,
  Beginning,
  beginningOf,
  faultOfBroken,
  type Sum,
  summed,
  type Times,
  type Tx,
  type Waits,
} from './transaction.ts';

/*
 * Verbs of several conversations in one transaction: they share its statements, its commit and its notification.
 *
 *   BEGIN ──▶ all verbs run: what they read at the same moment is sent together; what they write is kept ──▶ all is written ──▶ COMMIT
 *
 * A verb that throws has written nothing. After a fault of the database no verb has: then each runs again in a transaction of its own, and only the
 * one at fault fails.
 */

export type Verb = (tx: Tx) => Promise<unknown>;

/** Of one verb. `apart`: it has to run in a transaction of its own. */
export type Outcome =
  | { readonly is: 'done'; readonly value: unknown }
  | { readonly is: 'refused'; readonly error: unknown }
  | { readonly is: 'apart' };

interface Ran {
  readonly value: unknown;
  readonly news: News;
  readonly firsts: readonly Statement[];
  readonly writes: readonly Statement[];
  readonly sums: readonly Sum<unknown>[];
}

const APART: Outcome = { is: 'apart' };

/** Rejects with a fault of the storage, when it is unknown whether anything was written. `news` null: nothing was written. */
export async function sharedTransaction(
  server: Server,
  verbs: readonly Verb[],
  times: (database: number) => Times,
  waits: Waits,
): Promise<{ readonly outcomes: Outcome[]; readonly news: News | null }> {
  const client = await server.take();
  let broken: Error | boolean = false;
  try {
    const beginning = new Beginning(server.query(client, beginningOf(waits)), times);
    const reads = new Reads(server, client);
    const ends = await Promise.allSettled(verbs.map((verb) => run(verb, beginning, reads)));
    await beginning.ended;
    if (reads.fault !== null) throw reads.fault;
    const done = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []));
    const sums = summed(done.flatMap((ran) => ran.sums));
    const lists = done.map(({ writes }) => writes);
    const firsts = joined(done.flatMap((ran) => ran.firsts));
    await sendWrites(server, client, { firsts, lists, last: sums });
    return { outcomes: ends.map(outcomeOf), news: newsOf(done) };
  } catch (error) {
    await server.query(client, 'ROLLBACK').catch((fault: Error) => {
      broken = fault;
    });
    // If the connection is broken, it is unknown whether the transaction was committed.
    if (broken !== false) throw faultOfBroken(error, broken);
    if (!isOfOne(error)) throw error;
    return { outcomes: verbs.map(() => APART), news: null };
  } finally {
    client.release(broken);
  }
}

/** Whether one verb caused the fault, so that the others may succeed without it: its rows are damaged or locked, it conflicted, or it has a bug. */
function isOfOne(error: unknown): boolean {
  const fault = storageFault(error);
  return fault === null || isDamage(fault) || isLockedOut(fault) || isCollision(error);
}

async function run(verb: Verb, beginning: Beginning, reads: Reads): Promise<Ran> {
  const sql = new SharedSql(reads);
  const [news, sums]: [News, Sum<unknown>[]] = [new News(), []];
  const value = await verb({
    ...{ sql, begun: beginning.ended, isShared: true, moved: news.add },
    get now() {
      return beginning.now;
    },
    get monotonic() {
      return beginning.monotonic;
    },
    alone() {
      throw new Apart();
    },
    last: (sum) => void sums.push(sum as Sum<unknown>),
  });
  return { value, news, sums, firsts: sql.firsts, writes: sql.writes };
}

function outcomeOf(end: PromiseSettledResult<Ran>): Outcome {
  if (end.status === 'fulfilled') return { is: 'done', value: end.value.value };
  if (end.reason instanceof Apart || isCollision(end.reason)) return APART;
  return { is: 'refused', error: storageFault(end.reason) ?? end.reason };
}

function newsOf(done: readonly Ran[]): News {
  const all = new News();
  for (const { news } of done) for (const id of news.ids) all.add(id, news.own.has(id));
  return all;
}

/** What verbs read in one transaction: what they ask for in the same tick is sent together. */
class Reads {
  readonly #server: Server;
  readonly #client: PoolClient;
  #asked: Asked[] = [];
  fault: unknown = null;

  constructor(server: Server, client: PoolClient) {
    this.#server = server;
    this.#client = client;
  }

  ask(text: string, values: Value[]): Promise<{ rows: Record<string, unknown>[]; rowCount: number }> {
    return new Promise((resolve, reject) => {
      const fail = (fault: unknown) => {
        this.fault ??= fault;
        reject(fault);
      };
      this.#asked.push({ text, values, reject: fail, resolve: (rows) => resolve({ rows, rowCount: rows.length }) });
      if (this.#asked.length === 1) process.nextTick(() => void this.#send());
    });
  }

  async #send(): Promise<void> {
    const all = this.#asked;
    this.#asked = [];
    try {
      await sendTogether(this.#server, this.#client, all, { apart: false });
    } catch (fault) {
      for (const { reject } of all) reject(fault);
    }
  }
}

const READS = /^\s*SELECT\b/;

/** Carries out reads at once, and collects the writes. */
class SharedSql extends TxSql {
  readonly firsts: Statement[] = [];
  readonly writes: Statement[] = [];

  constructor(reads: Reads) {
    super(async (text, values) => {
      // This statement may write, and would do so at once, even if the verb throws afterwards.
      if (!READS.test(text)) throw new Apart();
      return reads.ask(text, values as Value[]);
    });
  }

  /** What a refusal means is not needed: after a fault, the verb runs again in a transaction of its own. */
  protected put(statement: Statement): void {
    this.writes.push(statement);
  }

  protected override putFirst(statement: Statement): void {
    this.firsts.push(statement);
  }
}
