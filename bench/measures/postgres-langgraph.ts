import { openPostgresStore } from '../../src/stores/postgres/store.ts';
import { NO_POSTGRES, PostgresServer } from '../../test/postgres/server.ts';
import type { Finding, Measure } from '../finding.ts';
import { text } from '../postgres/contender.ts';
import { openLangGraph, type Thread } from '../postgres/langgraph.ts';
import { BenchHome } from '../support/bench-home.ts';
import { history, type Words } from '../support/history.ts';
import { inProcessAgent, said } from '../support/in-process-agent.ts';
import { countsOf, DURABLE, perTurn } from '../support/postgres-counts.ts';
import { median } from '../support/statistics.ts';
import { TurnWatch } from '../support/turn-watch.ts';

const LENGTHS = [10, 100, 1_000];
/** The prompt and the reply of turn n: 400 and 2,000 characters, different in each turn. */
const wordsOf = (n: number): Words => ({ prompt: text(400, n * 2), reply: text(2_000, n * 2 + 1) });

/**
 * The same messages in Throughline and in LangGraph with its PostgreSQL checkpointer, turn by turn in alternation. Measures the time of a
 * turn, from the prompt until the reply is stored, and what it writes to the database, around turn 10, 100 and 1,000.
 */
const measure: Measure = async ({ quick }) => {
  if (NO_POSTGRES !== null) throw new Error(NO_POSTGRES);
  const [lengths, most] = quick ? [LENGTHS.slice(0, 2), 4] : [LENGTHS, 40];
  const server = new PostgresServer();
  try {
    await server.start(DURABLE);
    await using home = new BenchHome();
    const [own, sync, exit] = [await server.database(), await server.database(), await server.database()];
    let n = 0;
    const answer = () => wordsOf(n).reply;
    const graph = await openLangGraph(server.url(sync), 'sync', answer);
    const lazy = await openLangGraph(server.url(exit), 'exit', answer);
    const store = await openPostgresStore({ url: server.url(own) });
    const { engine } = home.openOn(store, { agent: inProcessAgent(() => [said(answer())]) });
    const findings: Finding[] = [];
    for (const length of lengths) {
      n = length;
      const window = Math.min(most, length);
      const before = Math.max(0, length - Math.ceil(window / 2) - 2);
      const name = `thread-${length}`;
      const told = Array.from({ length: before }, (_, i) => wordsOf(i + 1));
      const { id, lastSeq } = await (before === 0
        ? engine.ensure({ key: name })
        : engine.import(history(before, 'double', told)));
      const watch = new TurnWatch(engine, id, lastSeq);
      const turn = async (text: string) => void (await watch.ended((await engine.submit(id, text)).turn.id));
      const threads = [
        { database: own, thread: { turn } },
        { database: sync, thread: await graph.thread(name, told) },
        { database: exit, thread: await lazy.thread(name, told) },
      ];
      findings.push(...about(length, window, await compared(server, threads, window, () => wordsOf(++n).prompt)));
      await watch.stop();
    }
    await graph.close();
    await lazy.close();
    return findings;
  } finally {
    await server.stop();
    server.remove();
  }
};

interface Cost {
  readonly ms: number;
  /** Bytes written to the log of the database. */
  readonly log: number;
  readonly bytes: number;
}

/** Times are measured in alternation. Bytes are measured one after the other, because all databases share one log. */
async function compared(
  server: PostgresServer,
  threads: readonly { readonly database: string; readonly thread: Thread }[],
  window: number,
  prompt: () => string,
): Promise<Cost[]> {
  const times = threads.map(() => [] as number[]);
  for (const { thread } of threads) for (let i = 0; i < 2; i += 1) await thread.turn(prompt());
  for (let i = 0; i < Math.ceil(window / 2); i += 1) {
    for (const [index, { thread }] of threads.entries()) {
      const start = performance.now();
      await thread.turn(prompt());
      times[index]?.push(performance.now() - start);
    }
  }
  const costs: Cost[] = [];
  for (const [index, { database, thread }] of threads.entries()) {
    const counts = await countsOf(server, database);
    const turns = Math.floor(window / 2);
    for (let i = 0; i < turns; i += 1) await thread.turn(prompt());
    const { log, bytes } = perTurn(counts, await countsOf(server, database), turns);
    costs.push({ ms: median(times[index] ?? []), log, bytes });
  }
  return costs;
}

function about(length: number, window: number, [own, sync, exit]: readonly Cost[]): Finding[] {
  if (own === undefined || sync === undefined || exit === undefined) throw new Error('Nothing was measured.');
  const kb = (bytes: number) => (bytes / 1_024).toFixed(0);
  const target = { kind: 'must', least: 1 } as const;
  return [
    {
      ...{ name: `PostgreSQL: LangGraph’s time of turn ${length} ÷ ours`, value: sync.ms / own.ms, unit: '×', target },
      note: `medians of ${Math.ceil(window / 2)}: ${sync.ms.toFixed(1)} and ${own.ms.toFixed(1)} ms; ${exit.ms.toFixed(1)} ms with one checkpoint at the end; its graph runtime is in it, as our engine is`,
    },
    {
      ...{
        name: `PostgreSQL: LangGraph’s bytes of turn ${length} ÷ ours`,
        value: sync.log / own.log,
        unit: '×',
        target,
      },
      note: `written to the log of the database: ${kb(sync.log)} and ${kb(own.log)} KB, ${kb(exit.log)} KB with one checkpoint; tables and indexes grow by ${kb(sync.bytes)}, ${kb(own.bytes)} and ${kb(exit.bytes)} KB`,
    },
  ];
}

export default measure;
