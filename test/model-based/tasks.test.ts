import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { test } from 'vitest';
import { openSqliteStore } from '../../src/stores/sqlite/store.ts';
import { checkSequences } from './sequences.ts';
import { anyCommand } from './tasks/commands.ts';
import { World } from './tasks/world.ts';

test('a queue of tasks follows the rules, whatever happens, in any order', {
  timeout: 3_600_000,
}, async () => {
  await checkSequences({
    name: 'tasks',
    runs: 125,
    setup: fc.constant(undefined),
    command: anyCommand,
    longest: 40,
    show: (command) => JSON.stringify(command),
    run: async (commands, note) => {
      const folder = mkdtempSync(join(tmpdir(), 'throughline-tasks-'));
      const clock = { time: 1_000 };
      const times = { now: () => clock.time, monotonic: () => clock.time };
      const store = await openSqliteStore({ file: join(folder, 'model.db'), clock: times, boot: 'boot' });
      try {
        const world = new World(store, clock, note);
        for (const command of commands) await world.run(command);
      } finally {
        await store.close();
        rmSync(folder, { recursive: true, force: true });
      }
    },
  });
});
