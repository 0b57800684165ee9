import { Place } from '../../test/faults/harness/place.ts';
import { Random, seedOfRun } from '../../test/faults/harness/random.ts';
import { workThroughQueue } from '../../test/faults/harness/task-queue.ts';
import type { Measure } from '../finding.ts';

/**
 * A queue that two runners work on while they are killed again and again: whether order and limit were kept, and how long it took. The
 * agent answers at once in the runner's process, so that its time does not count.
 */
const measure: Measure = async ({ quick }) => {
  const [count, kills, parallel] = quick ? [120, 5, 5] : [1_000, 20, 5];
  await using place = new Place();
  const random = new Random(seedOfRun());
  const start = performance.now();
  const facts = await workThroughQueue(place, { count, kills, parallel, random });
  const seconds = (performance.now() - start) / 1_000;
  const faults = facts.outOfOrder + facts.outOfTurn + facts.gaps + facts.openTurns + (facts.complaints === '' ? 0 : 1);
  return [
    {
      name: 'queued tasks done once after kills',
      value: facts.doneOnce,
      unit: '',
      target: { kind: 'must', least: count },
      note: `${count} tasks of four owners, two runners, ${kills} kills of one or both; ${(count / seconds).toFixed(0)} tasks a second with all that`,
    },
    {
      name: 'of these out of order or turn, without their number, or left open',
      value: faults,
      unit: '',
      target: { kind: 'must', most: 0 },
      note: 'each in the order of its owner; of the owners the one with the fewest running, and who waited longest; numbers of events without gaps',
    },
    {
      name: 'of these at once, at the most',
      value: facts.mostAtOnce,
      unit: '',
      target: { kind: 'must', most: parallel },
      note: 'in both runners together, as the events tell it',
    },
  ];
};

export default measure;
