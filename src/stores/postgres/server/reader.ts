import { type PoolClient, type QueryResult, type Server, Sql, type Value } from './connect.ts';
import type { Asked } from './many.ts';
import { sendTogether } from './together.ts';

/*
 * Reads of many callers share connections and statements: under load, a turn does not wait for a free connection for each row that it looks at.
 *
 *   asked ──▶ waits until the end of this tick, and until the answers before it have come ──▶ sent together, the same statements as one (many.ts)
 *
 * For short reads only: a long one would hold up the others.
 */
/** One is enough: reads that come meanwhile are sent together afterwards. */
const CONNECTIONS = 1;
/** How long to wait for an answer. Short, because many callers wait on one connection. */
const ANSWER_MS = 5_000;
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
      // After all reads of this tick.
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
      // More reads may have come while this one waited for a connection.
      all = this.#waiting.splice(0);
      broken = await sendTogether(this.#server, client, all, { apart: true, ms: ANSWER_MS });
    } catch (error) {
      broken = error as Error;
      for (const { reject } of all.length > 0 ? all : this.#waiting.splice(0)) reject(error);
    } finally {
      client?.release(broken);
      this.#used -= 1;
      void this.#send();
    }
  }
}
