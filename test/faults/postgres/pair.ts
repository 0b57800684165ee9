import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ServedProcess } from '../../e2e/http/support/served-process.ts';
import { Network } from '../../postgres/network.ts';
import { PostgresServer } from '../../postgres/server.ts';
import { Servers } from '../../postgres/servers.ts';
import { until } from '../harness/until.ts';
import type { ConversationFacts, EventFact, TurnFact } from '../storm/facts.ts';

const DAY_MS = 86_400_000;
const CLOCK = pathToFileURL(join(import.meta.dirname, '../programs/wrong-clock.ts')).href;
/** An acknowledged commit must at least be written to the operating system. */
const DURABLE = ['synchronous_commit=on'];

export interface Member {
  readonly served: ServedProcess;
  /** Between the server and PostgreSQL. */
  readonly network: Network;
}

export interface Takeover {
  /** From the fault until a reader saw the end of the turn. */
  readonly seenMs: number;
  /** From the end of the lease to the end of the turn, by the clock of the database. */
  readonly endedMs: number;
}

/**
 * Two servers of one place on one PostgreSQL, each behind a network that can be cut. The wall clock of the first is always a day ahead, that
 * of the second a day behind.
 */
export class Pair implements AsyncDisposable {
  readonly members: readonly Member[];
  readonly #postgres: PostgresServer;
  readonly #database: string;
  readonly #ends: AsyncDisposableStack;
  readonly #effects: string;

  static async start(): Promise<Pair> {
    await using starting = new AsyncDisposableStack();
    const postgres = new PostgresServer();
    starting.defer(async () => {
      await postgres.stop();
      postgres.remove();
    });
    await postgres.start(DURABLE);
    const database = await postgres.database();
    const url = postgres.url(database);
    const servers = starting.use(new Servers(url));
    const members: Member[] = [];
    for (const wrongBy of [DAY_MS, -DAY_MS]) {
      const network = starting.use(await Network.to(join(postgres.folder, 'socket/.s.PGSQL.5432')));
      const clock = { NODE_OPTIONS: `--import=${CLOCK}`, THROUGHLINE_WRONG_CLOCK_MS: String(wrongBy) };
      const env = { THROUGHLINE_STORE: network.url(url), ...clock };
      members.push({ network, served: await servers.serve(servers.newHome(), { env }) });
    }
    return new Pair({ members, postgres, database, effects: join(servers.folder, 'effects'), ends: starting.move() });
  }

  private constructor(parts: {
    members: readonly Member[];
    postgres: PostgresServer;
    database: string;
    effects: string;
    ends: AsyncDisposableStack;
  }) {
    this.members = parts.members;
    this.#postgres = parts.postgres;
    this.#database = parts.database;
    this.#effects = parts.effects;
    this.#ends = parts.ends;
  }

  /** The file that tools append to. */
  get effects(): string {
    return this.#effects;
  }

  /** Rows of the database, read without a store and without the networks. */
  rows<Row>(sql: string): Promise<Row[]> {
    return this.#postgres.query(sql, [], this.#database) as Promise<Row[]>;
  }

  /** The server that holds the conversation, and the other one. */
  async holder(): Promise<{ holder: Member; other: Member }> {
    const held = 'SELECT w.process FROM leases l JOIN workers w ON w.no = l.worker';
    const { process } = await until('somebody holds it', async () => (await this.rows<{ process: string }>(held))[0]);
    const { pid } = JSON.parse(process);
    const holder = this.members.find(({ served }) => served.pid === pid);
    const other = this.members.find((member) => member !== holder);
    if (holder === undefined || other === undefined) throw new Error(`${process} is none of the two.`);
    return { holder, other };
  }

  /** When the lease of the only conversation ends, if nobody renews it. */
  async leaseEnd(): Promise<number> {
    return (await this.rows<{ ends: number }>('SELECT ready_at::float8 AS ends FROM leases'))[0]?.ends ?? 0;
  }

  /** When the turn ended, by the clock of the database. */
  async endOf(turn: string): Promise<number> {
    const [row] = await this.rows<{ at: number }>(
      `SELECT e.at::float8 FROM events e JOIN turns t ON t.no = e.turn WHERE t.id = '${turn}' AND e.kind = 'turn.ended'`,
    );
    if (row === undefined) throw new Error(`turn ${turn} has no end`);
    return row.at;
  }

  /** Submits under the same id until it is accepted, because the database may not answer at first. */
  async submitted({ served: { caller } }: Member, body: { prompt: string; requestId: string }) {
    const asked = { agent: 'slow', ...body };
    const { turn } = await until('the prompt is accepted', async () => {
      const answer = await caller.ask('POST', '/conversations/notes/turns', asked);
      return answer.status < 300 ? answer.body : null;
    });
    return { name: body.requestId, turn: String(turn.id), n: Number(turn.n) };
  }

  /** Everything that the database has at the end. */
  async facts(): Promise<ConversationFacts> {
    const [lease] = await this.rows<{ pending: number; head: number }>('SELECT pending::int, head::int FROM leases');
    if (lease === undefined) throw new Error('there is no conversation');
    return {
      ...{ key: 'notes', ...lease, watermarks: [], ran: this.#ran() },
      events: await this.rows<EventFact>(
        `SELECT e.seq::int, e.kind, e.epoch::int, t.n::int FROM events e LEFT JOIN turns t ON t.no = e.turn ORDER BY e.seq`,
      ),
      turns: await this.rows<TurnFact>(
        `SELECT t.id, t.n::int, t.request_id AS "requestId", t.state, t.failure, 0 AS dropped,
           CASE WHEN r.turn IS NOT NULL THEN json_build_object('reply', '') END AS record
         FROM turns t LEFT JOIN records r ON r.turn = t.no ORDER BY t.n`,
      ),
    };
  }

  #ran(): string[] {
    const lines = readFileSync(this.#effects, 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line) => line.split(' ')[0] ?? '');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#ends.disposeAsync();
  }
}
