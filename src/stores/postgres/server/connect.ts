// The only file of the store that uses the package `pg`, which is an optional peer.
import { createRequire } from 'node:module';
import type { Writable } from 'node:stream';
import type { Client, ClientConfig, CustomTypesConfig, Pool, PoolClient, QueryResult } from 'pg';
import { ThroughlineError } from '../../../core/errors.ts';
import type { StoreConnections } from '../../../ports/store/census.ts';
import type { DamageReporter } from '../../shared/page.ts';
import type { Taken } from '../../shared/verbs/steps.ts';
import { KEEP_PLANS, nameOf } from '../plans.ts';
import { openFault, violated } from './faults.ts';

/** How long to wait for a connection: for one of the pool, or for the server to answer. */
const CONNECT_MS = 10_000;
/** How long to wait for the answer to a statement: a connection that was cut gives none. Less than a lease takes. */
const ANSWER_MS = 10_000;
/** After so much silence the operating system probes the connection, each second, ten times. */
const KEEPALIVE_MS = 5_000;

/** An id, a number or bytes; arrays for `= ANY(…)` and `unnest`. */
export type Value =
  | string
  | number
  | boolean
  | Uint8Array
  | null
  | readonly (string | number | boolean | Uint8Array | null)[];

/** What statements run on: the pool, or the one connection of a transaction. */
export class Sql implements DamageReporter {
  /** Called for a row that cannot be read and was left out. */
  onDamage: (error: unknown) => void = () => {};
  readonly #query: (text: string, values: unknown[]) => Promise<Pick<QueryResult, 'rows' | 'rowCount'>>;

  constructor(query: (text: string, values: unknown[]) => Promise<Pick<QueryResult, 'rows' | 'rowCount'>>) {
    this.#query = query;
  }

  /** The first row; undefined: none. */
  async one<Row>(text: string, ...values: Value[]): Promise<Row | undefined> {
    return (await this.#query(text, values.map(storable))).rows[0];
  }

  async all<Row>(text: string, ...values: Value[]): Promise<Row[]> {
    return (await this.#query(text, values.map(storable))).rows;
  }

  /** How many rows were changed. */
  async changed(text: string, ...values: Value[]): Promise<number> {
    return (await this.#query(text, values.map(storable))).rowCount ?? 0;
  }
}

/** The statements of one transaction. They run in the order in which they are given. */
export abstract class TxSql extends Sql {
  /** A statement whose answer nobody needs: it is sent without waiting. Its fault is that of the transaction. */
  run(text: string, ...values: readonly Value[]): void {
    this.put({ text, values: values.map(storable) as Value[] });
  }

  /** The same. `taken` makes the error for the caller when a unique index refuses it. */
  runUnlessTaken(taken: Taken | undefined, text: string, ...values: readonly Value[]): void {
    this.put({ text, values: values.map(storable) as Value[] }, taken);
  }

  /**
   * The same for rows that other transactions write as well. Each value is an array with one place for each row. It must need nothing that is written
   * before it: what several verbs of a transaction write is joined to one statement, which writes in a fixed order, so that two transactions do not
   * deadlock.
   */
  runFirst(text: string, ...values: readonly (readonly string[])[]): void {
    this.putFirst({ text, values: values.map(storable) as Value[] });
  }

  protected abstract put(statement: Statement, taken?: Taken): void;

  protected putFirst(statement: Statement): void {
    this.put(statement);
  }
}

export interface Statement {
  readonly text: string;
  readonly values: readonly Value[];
}

/** The one connection of a transaction of its own. */
export class OwnSql extends TxSql {
  readonly #sent: Promise<unknown>[] = [];
  readonly #send: (text: string, values: unknown[]) => Promise<unknown>;

  constructor(send: (text: string, values: unknown[]) => Promise<QueryResult>) {
    super(send);
    this.#send = send;
  }

  protected put({ text, values }: Statement, taken?: Taken): void {
    const answer = this.#send(text, [...values]).catch((fault: unknown) => {
      const index = violated(fault);
      throw index === null || taken === undefined ? fault : taken(index, fault);
    });
    // `allAnswered` reports it; until then nobody waits for it.
    answer.catch(() => {});
    this.#sent.push(answer);
  }

  /** Rejects with the first fault of what was sent: those after it say only that the transaction is broken. */
  async allAnswered(): Promise<void> {
    for (const answer of this.#sent) await answer;
  }
}

/** PostgreSQL cannot store NUL in a text. JSON needs no check: it escapes NUL. */
function storable(value: Value): unknown {
  if (Array.isArray(value)) return value.map(storable);
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value;
  return value instanceof Uint8Array && !Buffer.isBuffer(value) ? Buffer.from(value) : value;
}

/** The number that the server has for the connection. A pooler gives its clients another one. */
const NUMBER = 'SELECT pg_backend_pid() AS number';
/** What the connection is written to. */
function streamOf(client: Client | PoolClient): Writable {
  return (client as unknown as { connection: { stream: Writable } }).connection.stream;
}

/**
 * The client of the driver, with two differences. Its connection ends when its login fails: the driver leaves it open, for example when there
 * is no password, and it would keep this process alive until the server ends it (authentication_timeout, one minute). And it reads the
 * password file itself: when the driver does, it prints a warning that its next version will not.
 */
function endingClient(Base: typeof Client): typeof Client {
  return class EndingClient extends Base {
    constructor(config?: string | ClientConfig) {
      super(config);
      const own = this as unknown as { password: string | (() => Promise<string | undefined>) | null };
      own.password ??= () => filedPassword(this);
    }

    override connect(): Promise<Client>;
    override connect(callback: (error: never, client: Client) => void): void;
    override connect(callback?: (error: never, client: Client) => void): Promise<Client> | undefined {
      const connected = super.connect().catch((error: unknown) => {
        streamOf(this).destroy();
        throw error;
      });
      if (callback === undefined) return connected;
      connected.then((client) => callback(null as never, client), callback as (error: unknown) => void);
      return undefined;
    }
  };
}

/** The password for this connection in `~/.pgpass` or `$PGPASSFILE`; undefined: there is none. The reader comes with the driver. */
function filedPassword({ host, port, database, user }: Client): Promise<string | undefined> {
  const driver = createRequire(import.meta.url).resolve('pg');
  const readFile: PasswordReader = createRequire(driver)('pgpass');
  return new Promise((resolve) => readFile({ host, port, database, user }, resolve));
}

type PasswordReader = (
  connection: Pick<Client, 'host' | 'port' | 'database' | 'user'>,
  done: (password: string | undefined) => void,
) => void;

/** Joins everything that is sent in this tick into one write, because each write wakes the server. */
function together(client: PoolClient): void {
  const stream = streamOf(client);
  stream.cork();
  process.nextTick(() => stream.uncork());
}

/**
 * Ends the connection when there is no answer for so long; what waits on it then fails. If this process was frozen, the answer may already be
 * here: it is read first.
 */
export async function answered<T>(client: Client | PoolClient, answer: Promise<T>, ms: number): Promise<T> {
  let last: NodeJS.Immediate | undefined;
  const giveUp = setTimeout(() => {
    last = setImmediate(() => streamOf(client).destroy());
  }, ms);
  try {
    return await answer;
  } finally {
    clearTimeout(giveUp);
    clearImmediate(last);
  }
}

/**
 * Connections to one database. On a connection to the server itself statements are named: they are planned once, and planning takes longer than
 * running them. Behind a pooler that shares connections, named statements fail: there they have no names, and nothing is set for a session.
 */
export class Server {
  readonly pool: Pool;
  /** Whether connections for notifications (LISTEN) go to another address. */
  readonly hearsElsewhere: boolean;
  readonly #newClient: () => Client;
  /** Connections on which statements are named. */
  readonly #direct = new WeakSet<object>();
  /** When each connection last answered. */
  readonly #answeredAt = new WeakMap<object, number>();
  /** When a connection last failed to answer. Connections that were silent since then may be broken, too. */
  #silentSince = Number.NEGATIVE_INFINITY;

  private constructor(pool: Pool, newClient: () => Client, hearsElsewhere: boolean) {
    this.pool = pool;
    this.#newClient = newClient;
    this.hearsElsewhere = hearsElsewhere;
    // An `error` event without a listener would end this process. The pool emits it for idle connections, and a connection in use emits it
    // itself. Nothing else is needed: the running statement fails, and the pool opens another connection.
    pool.on('error', () => {});
    pool.on('connect', (client) => void client.on('error', () => {}));
    // Called with a new connection before it is used first.
    pool.options.verify = (client, done) => void this.#look(client).then(() => done(), done);
  }

  async #look(client: PoolClient): Promise<void> {
    const { rows } = await this.query(client, NUMBER);
    if (rows[0]?.number !== (client as unknown as { processID: number }).processID) return;
    await this.query(client, KEEP_PLANS);
    this.#direct.add(client);
  }

  /** A connection of the pool. One that may be broken is ended, and another is taken. */
  async take(): Promise<PoolClient> {
    for (;;) {
      const client = await this.pool.connect();
      if ((this.#answeredAt.get(client) ?? Number.POSITIVE_INFINITY) >= this.#silentSince) return client;
      streamOf(client).destroy();
      client.release(true);
    }
  }

  /** Sends to a connection of the pool. Without `values`: several statements, or one that needs no plan. `ms`: how long it may take. */
  async query(client: PoolClient, text: string, values?: unknown[], ms = ANSWER_MS): Promise<QueryResult> {
    const sentAt = performance.now();
    try {
      const result = await answered(client, this.#send(client, text, values), ms);
      this.#answeredAt.set(client, performance.now());
      return result;
    } catch (error) {
      if (performance.now() - sentAt >= ms) this.#silentSince = Math.max(this.#silentSince, sentAt);
      throw error;
    }
  }

  #send(client: PoolClient, text: string, values?: unknown[]): Promise<QueryResult> {
    together(client);
    if (values === undefined) return client.query(text);
    const name = this.#direct.has(client) ? nameOf(text) : undefined;
    return name === undefined ? client.query(text, values) : client.query({ name, text, values });
  }

  /** Throws when the package is missing, or the address cannot be read. Connects to nothing yet. `name`: of its connections, as the server lists them. */
  static async at(url: string, connections: number, name: string = STORE_NAME): Promise<Server> {
    const { default: pg } = await load();
    const types = {
      getTypeParser: (oid: number, format?: 'text') => parser(oid) ?? pg.types.getTypeParser(oid, format),
    };
    const alive = { keepAlive: true, keepAliveInitialDelayMillis: KEEPALIVE_MS };
    const limits = { connectionTimeoutMillis: CONNECT_MS, ...alive };
    // `pipeline`: a statement is sent before the one before it is answered. Drivers without this option send one after the other.
    const how = { pipeline: true, application_name: name };
    const common = { types: types as CustomTypesConfig, ...how, ...limits };
    const EndingClient = endingClient(pg.Client);
    try {
      const { all, hearing } = addressesIn(url);
      const config = { connectionString: all, ...common };
      const direct = { connectionString: hearing, ...common };
      for (const one of [config, direct]) new pg.Client(one); // reads the address, and connects to nothing
      return new Server(
        new pg.Pool({
          ...config,
          Client: EndingClient,
          max: connections,
          idleTimeoutMillis: 60_000,
          allowExitOnIdle: true,
        }),
        () => new EndingClient(direct),
        hearing !== all,
      );
    } catch (error) {
      throw openFault(error);
    }
  }

  /** A connection of its own, outside of the pool, for notifications (LISTEN). */
  async connect(): Promise<Client> {
    const client = this.#newClient();
    client.on('error', () => {});
    await client.connect();
    return client;
  }

  get connections(): StoreConnections {
    const { options, totalCount, idleCount, waitingCount } = this.pool;
    return { most: options.max, used: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
  }

  /** Statements that need no transaction: each takes whatever connection is free. */
  get sql(): Sql {
    return new Sql(async (text, values) => {
      const client = await this.take();
      let broken: Error | boolean = false;
      try {
        return await this.query(client, text, values);
      } catch (error) {
        broken = error as Error;
        throw error;
      } finally {
        client.release(broken);
      }
    });
  }
}

/**
 * Behind a pooler LISTEN reaches nothing. `listen=HOST:PORT` in the address names the server itself, for that one connection; a HOST with a
 * slash is the folder of its socket.
 */
function addressesIn(url: string): { readonly all: string; readonly hearing: string } {
  const address = URL.parse(url);
  const [, host = '', port = '5432'] = /^(.+?)(?::(\d+))?$/.exec(address?.searchParams.get('listen') ?? '') ?? [];
  if (address === null || host === '') return { all: url, hearing: url };
  address.searchParams.delete('listen');
  const all = address.href;
  address.port = port;
  if (host.startsWith('/')) address.searchParams.set('host', host);
  else {
    address.searchParams.delete('host');
    address.hostname = host;
  }
  return { all, hearing: address.href };
}

async function load() {
  try {
    return await import('pg');
  } catch (cause) {
    throw new ThroughlineError('refused', 'The PostgreSQL store needs the package "pg", which is not installed.', {
      hint: 'Run "npm install pg" where Throughline is installed.',
      cause,
    });
  }
}

/** A copy looks for connections with this name to see whether somebody uses the database. */
export const STORE_NAME = 'throughline';
const [INT8, NUMERIC] = [20, 1700];

/** Whole numbers of 64 bits become numbers: all are ours, and none is above 2^53. Null: the driver parses it. */
function parser(oid: number): ((text: string) => number) | null {
  return oid === INT8 || oid === NUMERIC ? Number : null;
}

export type { Client, PoolClient, QueryResult };
