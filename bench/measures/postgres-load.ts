import type { Engine } from '../../src/ports/engine.ts';
import { openPostgresStore } from '../../src/stores/postgres/store.ts';
import { NO_POSTGRES, PostgresServer } from '../../test/postgres/server.ts';
import type { Finding, Measure } from '../finding.ts';
import { PROMPT, REPLY } from '../postgres/contender.ts';
import { BenchHome } from '../support/bench-home.ts';
import { inProcessAgent, said } from '../support/in-process-agent.ts';
import { addConversations } from '../support/many-conversations.ts';
import { type Counts, countsOf, DURABLE, perTurn } from '../support/postgres-counts.ts';
import { TurnWatch } from '../support/turn-watch.ts';

const AT_ONCE = 64;

/**
 * Whole turns of many conversations at once on one PostgreSQL of this machine, and what they cost it: in an empty database, and in one
 * with many conversations. A test double answers at once, so that the figures contain nothing of an agent.
 */
const measure: Measure = async ({ quick }) => {
  if (NO_POSTGRES !== null) throw new Error(NO_POSTGRES);
  const [turns, many] = quick ? [2, 1_000] : [20, 20_000];
  const server = new PostgresServer();
  try {
    await server.start(DURABLE);
    const database = await server.database();
    await using home = new BenchHome();
    const agent = inProcessAgent(() => [said(REPLY)]);
    const store = await openPostgresStore({ url: server.url(database) });
    const { engine } = home.openOn(store, { agent, engine: { maxWarm: AT_ONCE } });
    await run(engine, ['copied'], 1);
    const few = await loadOf(server, database, (count) => run(engine, keys('few'), count), turns);
    const before = await countsOf(server, database);
    await addConversations(server, database, { key: 'copied', count: many });
    const bytes = perTurn(before, await countsOf(server, database), many).bytes;
    const full = await loadOf(server, database, (count) => run(engine, keys('full'), count), turns);
    return [...aboutLoad(few, turns * AT_ONCE), ...aboutSize(few, full, { many, bytes })];
  } finally {
    await server.stop();
    server.remove();
  }
};

const keys = (name: string) => Array.from({ length: AT_ONCE }, (_, i) => `${name}-${i}`);

/** Runs `count` turns in each of these conversations, one after the other. The conversations run at the same time. */
async function run(engine: Engine, among: readonly string[], count: number): Promise<void> {
  await Promise.all(
    among.map(async (key) => {
      const { id, lastSeq } = await engine.ensure({ key });
      const watch = new TurnWatch(engine, id, lastSeq);
      for (let i = 0; i < count; i += 1) await watch.ended((await engine.submit(id, PROMPT)).turn.id);
      await watch.stop();
    }),
  );
}

interface Load {
  readonly perSecond: number;
  /** Per turn. */
  readonly counts: Counts;
  readonly ownCpuMs: number;
}

async function loadOf(
  server: PostgresServer,
  database: string,
  work: (count: number) => Promise<void>,
  turns: number,
): Promise<Load> {
  await work(2);
  const before = await countsOf(server, database);
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  await work(turns);
  const [seconds, { user, system }] = [(performance.now() - start) / 1_000, process.cpuUsage(cpu)];
  const all = turns * AT_ONCE;
  const counts = perTurn(before, await countsOf(server, database), all);
  return { perSecond: all / seconds, counts, ownCpuMs: (user + system) / 1_000 / all };
}

function aboutLoad({ perSecond, counts, ownCpuMs }: Load, turns: number): Finding[] {
  const { cpuMs, transactions, log, added, changed, bytes } = counts;
  const stated = (name: string, value: number, unit: string, note: string): Finding => ({
    ...{ name: `PostgreSQL under load: ${name}`, value, unit, target: null, note },
  });
  return [
    stated(
      'turns',
      perSecond,
      '/s',
      `${AT_ONCE} conversations at once, one process, the database on the same machine; a double answers at once`,
    ),
    stated(
      'processor time of the database a turn',
      cpuMs,
      'ms',
      `mean of ${turns} turns; of the process that runs them ${ownCpuMs.toFixed(1)} ms`,
    ),
    stated('transactions a turn', transactions, '', 'with each read outside of a transaction'),
    stated(
      'bytes of its log a turn',
      log,
      'B',
      `a prompt of ${PROMPT.length} characters, an answer of ${REPLY.length}`,
    ),
    stated(
      'bytes of tables and indexes a turn',
      bytes,
      'B',
      `${added.toFixed(1)} rows added, ${changed.toFixed(1)} changed or removed`,
    ),
  ];
}

function aboutSize(few: Load, full: Load, { many, bytes }: { many: number; bytes: number }): Finding[] {
  return [
    {
      name: `PostgreSQL under load: turns/s with ${many.toLocaleString('en')} conversations ÷ with ${AT_ONCE * 2}`,
      value: full.perSecond / few.perSecond,
      unit: '×',
      target: null,
      note: `processor time of the database a turn: ${few.counts.cpuMs.toFixed(1)} and ${full.counts.cpuMs.toFixed(1)} ms`,
    },
    {
      name: 'PostgreSQL: bytes of a conversation with one turn',
      value: bytes,
      unit: 'B',
      target: null,
      note: `mean of ${many.toLocaleString('en')} copies, tables and indexes`,
    },
  ];
}

export default measure;
