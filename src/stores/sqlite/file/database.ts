import { type Connection, connect, type Statement, type Value } from './node-sqlite.ts';

/** How long SQLite itself may wait for a lock, blocking this process; longer waits are asynchronous (`whileBusy`). */
const LOCK_WAIT_MS = 2;

/** With a bare parameter SQLite plans the statement again at every use, which takes longer than a short read. */
export const LIMIT = 'LIMIT ? + 0';

/** One connection and its statements, each prepared once. */
export class Database {
  readonly #connection: Connection;
  readonly #statements = new Map<string, Statement>();

  constructor(file: string) {
    this.#connection = connect(file, LOCK_WAIT_MS);
  }

  /** The first row; undefined: none. */
  one<Row>(sql: string, ...values: Value[]): Row | undefined {
    return this.#statement(sql).get(...values) as Row | undefined;
  }

  all<Row>(sql: string, ...values: Value[]): Row[] {
    return this.#statement(sql).all(...values) as Row[];
  }

  /** Row by row, for callers that may stop early. */
  each<Row>(sql: string, ...values: Value[]): Iterable<Row> {
    return this.#statement(sql).iterate(...values) as Iterable<Row>;
  }

  run(sql: string, ...values: Value[]): { changes: number; no: number } {
    const { changes, lastInsertRowid } = this.#statement(sql).run(...values);
    return { changes: Number(changes), no: Number(lastInsertRowid) };
  }

  /** Several statements without values, not prepared. */
  script(sql: string): void {
    this.#connection.exec(sql);
  }

  get inTransaction(): boolean {
    return this.#connection.isTransaction;
  }

  /** The text of every statement used so far: a test checks the query plan of each. */
  get statements(): string[] {
    return [...this.#statements.keys()];
  }

  close(): void {
    this.#statements.clear();
    this.#connection.close();
  }

  #statement(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#connection.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}
