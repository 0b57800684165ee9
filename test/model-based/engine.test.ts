import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import type { Store } from '../../src/ports/store.ts';
import { openSqliteStore } from '../../src/stores/sqlite/store.ts';
import { anyCommand, anySetup, showCommand } from './engine/commands.ts';
import { World } from './engine/world.ts';
import { checkSequences } from './sequences.ts';

const folder = mkdtempSync(join(tmpdir(), 'throughline-model-'));
/** The time of the current sequence. All sequences share one store, and its leases use this time. */
let time = () => 0;
let store: Store;

beforeAll(async () => {
  const clock = { now: () => time(), monotonic: () => time() };
  store = await openSqliteStore({ file: join(folder, 'model.db'), clock, boot: 'boot' });
});

afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

test('the promises are kept, whatever is killed, continues, fails or interferes, in any order', {
  timeout: 3_600_000,
}, async () => {
  let count = 0;
  await checkSequences({
    name: 'engine',
    runs: 200,
    setup: anySetup,
    command: anyCommand,
    longest: 18,
    show: showCommand,
    run: async (commands, note, setup) => {
      count += 1;
      const world = new World(store, `e${count}`, 1_000, setup, note);
      time = () => world.machine.time;
      try {
        await world.start();
        for (const command of commands) await world.run(command);
        await world.finish();
      } finally {
        await world.dispose();
      }
    },
  });
});
