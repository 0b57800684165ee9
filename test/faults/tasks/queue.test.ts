import { expect, test } from 'vitest';
import { NO_POSTGRES } from '../../postgres/server.ts';
import { onPostgres } from '../harness/on-postgres.ts';
import { Place } from '../harness/place.ts';
import { Random, seedOfRun } from '../harness/random.ts';
import { workThroughQueue } from '../harness/task-queue.ts';

const LONG = process.env.THROUGHLINE_LONG !== undefined;
const parallel = 5;
const STORES = [
  { name: 'SQLite', missing: null, newPlace: async () => new Place(), tasks: 120, kills: 5 },
  {
    name: 'PostgreSQL',
    missing: NO_POSTGRES,
    newPlace: async () => new Place(await onPostgres()),
    ...{ tasks: 24, kills: 2 },
  },
];

for (const { name, missing, newPlace, tasks, kills } of STORES) {
  test(`queued tasks and kills on ${name}: each is done once, in order, within the limit, and owners take turns`, {
    timeout: 1_800_000,
  }, async (context) => {
    if (missing !== null) return context.skip(missing);
    const seed = seedOfRun();
    await using place = await newPlace();
    const size = LONG ? { count: 1_000, kills: 20 } : { count: tasks, kills };
    const facts = await workThroughQueue(place, { ...size, parallel, random: new Random(seed) });
    expect(facts, `seed ${seed}`).toEqual({
      doneOnce: size.count,
      mostAtOnce: parallel,
      outOfOrder: 0,
      outOfTurn: 0,
      gaps: 0,
      openTurns: 0,
      complaints: '',
    });
  });
}
