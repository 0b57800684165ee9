import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { NO_POSTGRES, PostgresServer } from '../../test/postgres/server.ts';
import type { Finding, Measure } from '../finding.ts';
import { AT_ONCE } from '../postgres/contender.ts';
import { race } from '../postgres/race.ts';
import { DURABLE } from '../support/postgres-counts.ts';
import { median } from '../support/statistics.ts';

const OTHERS = ['graphile', 'pg-boss', 'dbos'];
const PACKAGES = fileURLToPath(new URL('../postgres/node_modules', import.meta.url));

/**
 * The same prompts and replies through Throughline, and as jobs of three job queues that keep the order in a conversation, on one PostgreSQL
 * of this machine. Two processes submit and work. The products run one after the other, the second time in reverse order. Each conversation
 * has ten turns: with only two, the result would mostly be how fast a new process compiles its code and plans its statements.
 */
const measure: Measure = async ({ quick }) => {
  if (NO_POSTGRES !== null) throw new Error(NO_POSTGRES);
  if (!existsSync(PACKAGES))
    throw new Error('The packages to compare with are not installed. Run "node scripts/setup.js bench/postgres".');
  const [conversations, turns, rounds] = quick ? [40, 2, 1] : [1_000, 10, 2];
  const names = ['throughline', ...OTHERS];
  const found = new Map(names.map((name) => [name, [] as number[]]));
  const server = new PostgresServer();
  try {
    await server.start(DURABLE);
    for (let round = 0; round < rounds; round += 1) {
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        found
          .get(name)
          ?.push(await race(server, name, { processes: 2, conversations, turns, atOnce: AT_ONCE, waitMs: 0 }));
      }
    }
  } finally {
    await server.stop();
    server.remove();
  }
  return about(new Map([...found].map(([name, each]) => [name, median(each)])), `${conversations} × ${turns}`);
};

function about(perSecond: ReadonlyMap<string, number>, size: string): Finding[] {
  const own = perSecond.get('throughline') ?? Number.NaN;
  const best = Math.max(...OTHERS.map((name) => perSecond.get(name) ?? Number.NaN));
  const each = [...perSecond].map(([name, value]) => `${name} ${value.toFixed(0)}`).join(', ');
  return [
    {
      name: 'PostgreSQL: turns/s ÷ the best of three job queues',
      value: own / best,
      unit: '×',
      target: { kind: 'must', least: 2 },
      note: `${each} a second; ${size} turns, 2 processes with ${AT_ONCE} at once; from the first prompt to the last reply, each kept once and in order`,
    },
  ];
}

export default measure;
