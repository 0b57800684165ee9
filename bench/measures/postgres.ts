import pg from 'pg';
import type { Engine } from '../../src/ports/engine.ts';
import { openPostgresStore } from '../../src/stores/postgres/store.ts';
import { NO_POSTGRES, PostgresServer } from '../../test/postgres/server.ts';
import type { Finding, Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { history } from '../support/history.ts';
import { countsOf, DURABLE, perTurn } from '../support/postgres-counts.ts';
import { sightings } from '../support/sightings.ts';
import { median, quantile } from '../support/statistics.ts';
import { TurnWatch } from '../support/turn-watch.ts';

const PROMPT = '/say A word or two.';
const EARLY = 10;

/**
 * The same turns in a file and in a real PostgreSQL on this machine, in alternation; early and late in a conversation; and what a turn costs
 * the database. The scripted agent answers, so that the times contain little else.
 */
const measure: Measure = async ({ quick }) => {
  if (NO_POSTGRES !== null) throw new Error(NO_POSTGRES);
  const [late, window, seen] = quick ? [300, 10, 20] : [10_000, 200, 400];
  const server = new PostgresServer();
  try {
    await server.start(DURABLE);
    await using home = new BenchHome();
    const url = server.url(await server.database());
    const { engine } = home.openOn(await openPostgresStore({ url }));
    const { engine: inFile } = await home.open();
    const short = await Talk.begin(engine, 0);
    const long = await Talk.begin(engine, late - window - EARLY + 1);
    const beside = await Talk.begin(inFile, 0);
    for (let n = 1; n < EARLY; n += 1) for (const talk of [short, long, beside]) await talk.turn();
    const times = { short: [] as number[], long: [] as number[], beside: [] as number[] };
    for (let i = 0; i < window; i += 1) {
      times.short.push(await short.turn());
      times.long.push(await long.turn());
      times.beside.push(await beside.turn());
    }
    const costs = await costsOf(server, url, short, window);
    for (const talk of [short, long, beside]) await talk.stop();
    const latencies = await sightings({ engine, home: home.path, store: url }, seen);
    return [...aboutTimes(times, late), aboutSight(latencies), ...costs];
  } finally {
    await server.stop();
    server.remove();
  }
};

class Talk {
  readonly #engine: Engine;
  readonly #id: string;
  readonly #watch: TurnWatch;

  private constructor(engine: Engine, id: string, after: number) {
    this.#engine = engine;
    this.#id = id;
    this.#watch = new TurnWatch(engine, id, after);
  }

  static async begin(engine: Engine, turns: number): Promise<Talk> {
    const made = turns === 0 ? engine.ensure({ key: 'short' }) : engine.import(history(turns, 'scripted'));
    const { id, lastSeq } = await made;
    return new Talk(engine, id, lastSeq);
  }

  /** Runs a turn. Returns the time from submit until a follower sees its end, in ms. */
  async turn(): Promise<number> {
    const start = performance.now();
    const { turn } = await this.#engine.submit(this.#id, PROMPT);
    return (await this.#watch.ended(turn.id)) - start;
  }

  stop(): Promise<void> {
    return this.#watch.stop();
  }
}

type Times = Readonly<Record<'short' | 'long' | 'beside', readonly number[]>>;

function aboutTimes({ short, long, beside }: Times, late: number): Finding[] {
  const [early, end, file] = [median(short), median(long), median(beside)];
  return [
    {
      name: `PostgreSQL: time of turn ${late} ÷ turn ${EARLY}`,
      value: end / early,
      unit: '×',
      target: { kind: 'must', most: 1.1 },
      note: `medians: ${early.toFixed(2)} and ${end.toFixed(2)} ms from submit to end, agent included`,
    },
    {
      name: 'a turn on PostgreSQL ÷ on SQLite',
      value: early / file,
      unit: '×',
      target: null,
      note: `medians: ${early.toFixed(2)} and ${file.toFixed(2)} ms from submit to end, agent included; the database is on this machine, and both wait for the disk`,
    },
  ];
}

function aboutSight(latencies: readonly number[]): Finding {
  return {
    name: 'PostgreSQL: an event seen by another process, p99',
    value: quantile(latencies, 0.99),
    unit: 'ms',
    target: { kind: 'must', most: 50 },
    note: `after its commit was acknowledged, read by \`follow\`; p50 ${quantile(latencies, 0.5).toFixed(2)} ms`,
  };
}

/** What a turn costs the database, on average. */
async function costsOf(server: PostgresServer, url: string, talk: Talk, turns: number): Promise<Finding[]> {
  const name = new URL(url).pathname.slice(1);
  const before = await countsOf(server, name);
  const messages = counted();
  for (let i = 0; i < turns; i += 1) await talk.turn();
  const { statements, trips } = messages.stop();
  const each = perTurn(before, await countsOf(server, name), turns);
  const stated = (what: string, value: number, unit: string, note: string): Finding => ({
    ...{ name: `PostgreSQL: ${what} a turn`, value, unit, target: null, note: `mean of ${turns} turns; ${note}` },
  });
  return [
    stated('round trips to the database', trips / turns, '', `${(statements / turns).toFixed(1)} statements`),
    stated('rows added', each.added, '', `${each.changed.toFixed(1)} changed or removed`),
    stated('bytes of tables and indexes', each.bytes, 'B', `${Math.round(each.log)} bytes of its log`),
  ];
}

/** Counts what all connections of this process send, until it is stopped. A round trip begins when its connection waits for no other answer. */
function counted() {
  const { prototype } = pg.Client as unknown as { prototype: { query: (...args: unknown[]) => Promise<unknown> } };
  const query = prototype.query;
  const unanswered = new WeakMap<object, number>();
  let [statements, trips] = [0, 0];
  prototype.query = function (...args) {
    const before = unanswered.get(this) ?? 0;
    statements += 1;
    if (before === 0) trips += 1;
    unanswered.set(this, before + 1);
    const answered = () => void unanswered.set(this, (unanswered.get(this) ?? 1) - 1);
    const answer = query.apply(this, args);
    // The pool passes a callback, and then there is no promise.
    if (answer instanceof Promise) answer.then(answered, answered);
    else answered();
    return answer;
  };
  return {
    stop() {
      prototype.query = query;
      return { statements, trips };
    },
  };
}

export default measure;
