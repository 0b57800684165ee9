import fc from 'fast-check';
import { SESSION_STATES } from '../../../src/core/restore/session.ts';
import { TURN_ENDS } from '../../../src/core/turn/turn.ts';

/*
 * What can happen to a store, as data. Numbers choose among what exists at that moment (modulo its count), so that every sequence makes
 * sense, and every shorter one as well.
 */
const few = fc.nat(3);
const worker = fc.nat(2);

/** One write under the fence. Its numbers are not resolved yet. */
const write = fc.oneof(
  { weight: 3, arbitrary: fc.record({ write: fc.constant('update' as const), turn: few }) },
  {
    weight: 4,
    arbitrary: fc.record({
      write: fc.constant('open' as const),
      id: fc.nat(2),
      agent: fc.nat(1),
      // Mostly what a worker would write; sometimes beyond the head, which must be refused.
      ahead: fc.oneof({ weight: 5, arbitrary: fc.constant(-9) }, fc.integer({ min: -1, max: 1 })),
      turn: fc.option(few),
      parent: fc.option(few),
      state: fc.oneof({ weight: 4, arbitrary: fc.constant('live' as const) }, fc.constantFrom(...SESSION_STATES)),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      write: fc.constant('change' as const),
      session: few,
      ahead: fc.integer({ min: -2, max: 1 }),
      state: fc.constantFrom(...SESSION_STATES),
    }),
  },
  { weight: 1, arbitrary: fc.record({ write: fc.constant('begin' as const), turn: few }) },
  { weight: 2, arbitrary: fc.record({ write: fc.constant('receipt' as const), turn: few }) },
  { weight: 3, arbitrary: fc.record({ write: fc.constant('send' as const), turn: few, session: fc.option(few) }) },
  { weight: 1, arbitrary: fc.record({ write: fc.constant('retry' as const), turn: few }) },
  { weight: 2, arbitrary: fc.record({ write: fc.constant('ask' as const), turn: few }) },
  { weight: 2, arbitrary: fc.record({ write: fc.constant('deny' as const), permission: few }) },
  {
    weight: 3,
    arbitrary: fc.record({
      write: fc.constant('end' as const),
      turn: few,
      outcome: fc.constantFrom(...TURN_ENDS),
      // The right record for the turn; none, although it was sent; one that it must not have; or that of another turn.
      record: fc.oneof(
        { weight: 3, arbitrary: fc.constant('right' as const) },
        { weight: 2, arbitrary: fc.constantFrom('none', 'some', 'wrong') },
      ),
      session: fc.option(few),
      unsent: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.boolean()),
    }),
  },
);
export type WriteCommand = typeof write extends fc.Arbitrary<infer T> ? T : never;

const on = { conversation: fc.nat(2) };
const by = { ...on, worker };

const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('submit' as const),
      ...on,
      request: fc.option(fc.nat(2), { freq: 2 }),
      text: fc.nat(1),
      agent: fc.option(fc.nat(1)),
      session: fc.oneof({ weight: 8, arbitrary: fc.constant(null) }, fc.nat(2)),
    }),
  },
  // The next steps of a well-behaved worker. Without these, few sequences would reach the end of a turn.
  { weight: 10, arbitrary: fc.record({ do: fc.constant('advance' as const), ...by, steps: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('claim' as const), ...by, named: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('begin' as const), ...by }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('commit' as const),
      ...by,
      writes: fc.array(write, { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('repeat' as const), ...by }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), ...on, turn: few }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('answer' as const), ...on, permission: few, option: fc.nat(2) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('renew' as const), worker }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('release' as const), ...by }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('forget' as const), worker }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(10, 600, 1_100) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('fork' as const), ...on, back: fc.integer({ min: -1, max: 2 }) }),
  },
);
export type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;
export const anyCommand: fc.Arbitrary<Command> = command;

export function showCommand({ do: what, ...rest }: Command): string {
  const details = Object.entries(rest).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return [what, ...details].join(', ');
}
