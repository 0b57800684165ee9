import { NO_POSTGRES, PostgresServer } from '../../test/postgres/server.ts';
import type { Measure } from '../finding.ts';
import { race } from '../postgres/race.ts';
import { DURABLE } from '../support/postgres-counts.ts';
import { median } from '../support/statistics.ts';

const WAIT_MS = 500;
const AT_ONCE = 8;

/** Turns of half a second, in processes that run a limited number at once: one process, and two on the same database, in alternation. */
const measure: Measure = async ({ quick }) => {
  if (NO_POSTGRES !== null) throw new Error(NO_POSTGRES);
  const [conversations, turns, rounds] = quick ? [16, 2, 1] : [64, 5, 3];
  const [one, two]: [number[], number[]] = [[], []];
  const server = new PostgresServer();
  try {
    await server.start(DURABLE);
    const run = (processes: number) =>
      race(server, 'throughline', { processes, conversations, turns, atOnce: AT_ONCE, waitMs: WAIT_MS });
    for (let round = 0; round < rounds; round += 1) {
      one.push(await run(1));
      two.push(await run(2));
    }
  } finally {
    await server.stop();
    server.remove();
  }
  return [
    {
      name: 'PostgreSQL: turns/s of two servers ÷ of one',
      value: median(two) / median(one),
      unit: '×',
      target: { kind: 'must', least: 1.6 },
      note: `${median(one).toFixed(1)} and ${median(two).toFixed(1)} turns a second; at most ${AT_ONCE} at once in each, which take ${WAIT_MS} ms; without HTTP`,
    },
  ];
};

export default measure;
