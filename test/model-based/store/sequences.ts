import fc from 'fast-check';
import type { Store } from '../../../src/ports/store.ts';
import { checkSequences } from '../sequences.ts';
import { anyCommand, showCommand } from './commands.ts';
import { World } from './world.ts';

interface StoreSequences {
  readonly name: string;
  readonly runs: number;
  readonly clock: { time: number };
  /** Two stores on one database, as two processes have them. */
  readonly stores: () => readonly Store[];
}

/** Runs random sequences of verbs, and compares the store with the model. */
export async function storeSequences({ name, runs, clock, stores }: StoreSequences): Promise<void> {
  let count = 0;
  await checkSequences({
    name,
    runs,
    setup: fc.constant(undefined),
    command: anyCommand,
    longest: 12,
    show: showCommand,
    run: async (commands, note) => {
      count += 1;
      // Only every fourth sequence uses two connections, because that takes longer.
      const world = new World(count % 4 === 0 ? stores() : stores().slice(0, 1), clock, `s${count}`, note);
      await world.start();
      for (const command of commands) await world.run(command);
      await world.finish();
    },
  });
}
