import { expect, test } from 'vitest';
import { Place } from '../harness/place.ts';
import { Random, seedOfRun } from '../harness/random.ts';
import { workThroughQueue } from '../harness/task-queue.ts';

const LONG = process.env.THROUGHLINE_LONG !== undefined;
const [count, kills] = LONG ? [1_000, 20] : [120, 5];
const parallel = 5;

test(`${count} queued tasks and ${kills} kills: each is done once, in order, never more at once than may be, in turn for their owners`, {
  timeout: 600_000,
}, async () => {
  const seed = seedOfRun();
  await using place = new Place();
  const facts = await workThroughQueue(place, { count, kills, parallel, random: new Random(seed) });
  expect(facts, `seed ${seed}`).toEqual({
    doneOnce: count,
    mostAtOnce: parallel,
    outOfOrder: 0,
    outOfTurn: 0,
    gaps: 0,
    openTurns: 0,
    complaints: '',
  });
});
