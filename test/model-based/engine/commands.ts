import fc from 'fast-check';
import { PROFILES, type ProfileName } from './profiles.ts';
import { SCRIPTS, type Script } from './witness.ts';

/*
 * What can happen to a few engines on one store, as data. Numbers choose among what exists at that moment. `wait` says how long to wait
 * before the next command: until nothing happens any more, or only for a few steps, so that the command hits turns at any point.
 */
const which = fc.nat(3);
const wait = fc.oneof(
  { weight: 3, arbitrary: fc.constant('stillness' as const) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 40 }) },
);

const restore = fc.oneof(
  { weight: 8, arbitrary: fc.constant({}) },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      { policy: 'auto' as const },
      { policy: 'off' as const },
      { lastTurns: 1 },
      { rung: 'transcript' as const },
      { rebuild: true },
      { rebuild: true, rung: 'transcript' as const },
      { rebuild: true, rung: 'replay' as const },
      { rung: 'live' as const },
      { rung: 'resume' as const },
      { rung: 'replay' as const },
      { budgetTokens: 460 },
    ),
  },
);

const command = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('submit' as const),
      conversation: which,
      script: fc.constantFrom<Script>(...SCRIPTS),
      agent: fc.option(fc.constantFrom('a' as const, 'b' as const)),
      session: fc.oneof({ weight: 14, arbitrary: fc.constant(null) }, which),
      restore,
      wait,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('submit again' as const), turn: which, wait }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), turn: which, wait }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('answer' as const), yes: fc.boolean(), wait }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('retry' as const), turn: which, wait }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fork' as const), conversation: which, wait }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('warm' as const), conversation: which, wait }) },
  // `passes`: after this many more steps the engine is killed: at a commit, after one whose reply is lost, between two events of an agent …
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('crash' as const),
      engine: which,
      passes: fc.oneof(fc.constant(0), fc.nat(80)),
      children: fc.boolean(),
      wait,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pause' as const), engine: which, wait }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wake' as const), engine: which, wait }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('close' as const), engine: which, wait }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('let leases run out' as const), wait }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('foreign use' as const), session: which, wait }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('lose a session' as const), session: which, wait }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('lock' as const), times: fc.integer({ min: 1, max: 9 }), wait }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('hollow' as const), how: fc.constantFrom('openly', 'secretly'), wait }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('same id' as const), session: which, wait }) },
);
export type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

const profile = fc.constantFrom(...(Object.keys(PROFILES) as ProfileName[]));
/** The first command of every sequence: which kinds of agent there are. */
const setup = fc.record({ do: fc.constant('agents' as const), a: profile, b: profile });
export type Setup = typeof setup extends fc.Arbitrary<infer T> ? T : never;

export const anyCommand: fc.Arbitrary<Command> = command;
export const anySetup: fc.Arbitrary<Setup> = setup;

export function showCommand({ do: what, ...rest }: Command): string {
  const details = Object.entries(rest).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return [what, ...details].join(', ');
}
