import fc from 'fast-check';
import { OWNERS, WORKERS } from './model.ts';

/*
 * What can happen to a queue of tasks, as data. Numbers choose among what exists at that moment (modulo its count), so that every sequence
 * makes sense, and every shorter one as well.
 */
const few = fc.nat(6);
const owner = fc.constantFrom(...OWNERS);
const worker = fc.constantFrom(...WORKERS);
const is = <T extends string>(kind: T) => fc.constant(kind);

const task = fc.record({
  milestone: fc.option(fc.constantFrom('m', 'n'), { freq: 2 }),
  /** How many of the tasks right before it in the plan it depends on. */
  after: fc.nat(2),
});

export const anyCommand = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: is('add'),
      owner,
      parallel: fc.option(fc.integer({ min: 1, max: 3 })),
      tasks: fc.array(task, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ kind: is('claim'), worker, limit: fc.integer({ min: 1, max: 4 }), only: fc.option(few) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: is('end'),
      task: few,
      state: fc.constantFrom('done', 'failed', 'asking', 'cancelled'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: is('begin'), task: few }) },
  { weight: 1, arbitrary: fc.record({ kind: is('release'), task: few }) },
  { weight: 1, arbitrary: fc.record({ kind: is('forget'), worker }) },
  { weight: 1, arbitrary: fc.record({ kind: is('renew'), task: few }) },
  { weight: 1, arbitrary: fc.record({ kind: is('pass'), ms: fc.constantFrom(400, 700, 1_100) }) },
  { weight: 3, arbitrary: fc.record({ kind: is('cancel'), task: few }) },
  { weight: 3, arbitrary: fc.record({ kind: is('retry'), task: few }) },
);

export type Command = typeof anyCommand extends fc.Arbitrary<infer T> ? T : never;
