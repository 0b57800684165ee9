import { type PoolClient, type QueryResult, type Server, Sql, type Value } from './connect.ts';
import { type Asked, alone, type Group, groupsOf, type Types } from './many.ts';

/*
 * Reads of many callers share connections and statements: under load, a turn does not wait for a free connection for each row that it looks at.
 *
 *   asked ──▶ waits until the end of this tick, and until one of few connections is free ──▶ sent together, the same statements as one (many.ts)
 *
 * For short reads only: a long one would hold up the others.
 */
const CONNECTIONS = 2;
/** How long to wait for an answer: on a connection that has become silent, many wait. */
const ANSWER_MS = 5_000;
/** The types of the parameters of a statement, as the server finds them. In one message, so that it needs no session of its own. */
const typesQuery = (text: string) => `
  PREPARE throughline_types AS ${text};
  SELECT parameter_types::text[] AS types FROM pg_prepared_statements WHERE name = 'throughline_types';
  DEALLOCATE throughline_types`;
const known = new Map<string, Types>();

export class Reader {
  readonly sql: Sql;
  readonly #server: Server;
  #waiting: Asked[] = [];
  #used = 0;
  #due = false;

  constructor(server: Server) {
    this.#server = server;
    this.sql = new Sql((text, values) => this.#ask(text, values as Value[]));
  }

  #ask(text: string, values: Value[]): Promise<Pick<QueryResult, 'rows' | 'rowCount'>> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        ...{ text, values, reject },
        resolve: (rows) => resolve({ rows, rowCount: rows.length }),
      });
      if (this.#due || this.#used >= CONNECTIONS) return;
      this.#due = true;
      // After all that was asked for in this tick.
      process.nextTick(() => {
        this.#due = false;
        void this.#send();
      });
    });
  }

  async #send(): Promise<void> {
    if (this.#waiting.length === 0 || this.#used >= CONNECTIONS) return;
    this.#used += 1;
    let all: Asked[] = [];
    let client: PoolClient | null = null;
    let broken: Error | boolean = false;
    try {
      client = await this.#server.take();
      // More may have come while it waited for the connection.
      all = this.#waiting.splice(0);
      await this.#learn(client, all);
      const groups = groupsOf(all, (text) => known.get(text));
      const ends = await Promise.allSettled(groups.map((group) => this.#answer(client as PoolClient, group)));
      broken = ends.some(({ status }) => status === 'rejected');
    } catch (error) {
      broken = error as Error;
      for (const { reject } of all.length > 0 ? all : this.#waiting.splice(0)) reject(error);
    } finally {
      client?.release(broken);
      this.#used -= 1;
      void this.#send();
    }
  }

  /** The types of statements that several ask for the first time. */
  async #learn(client: PoolClient, all: readonly Asked[]): Promise<void> {
    const seen = new Set<string>();
    const several = new Set(all.map(({ text }) => text).filter((text) => seen.size === seen.add(text).size));
    for (const text of several) {
      if (known.has(text)) continue;
      const results = (await this.#server.query(client, typesQuery(text))) as unknown as QueryResult[];
      known.set(text, results[1]?.rows[0]?.types ?? []);
    }
  }

  async #answer(client: PoolClient, group: Group): Promise<void> {
    const { text, values, asked } = group;
    try {
      const { rows } = await this.#server.query(client, text, values as unknown[], ANSWER_MS);
      for (const [i, own] of group.share(rows).entries()) asked[i]?.resolve(own);
    } catch (error) {
      if (asked.length === 1) {
        asked[0]?.reject(error);
        throw error;
      }
      // One of them asks what cannot be answered: the others are not at fault.
      await Promise.all(asked.map((one) => this.#answer(client, alone(one))));
    }
  }
}
