import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import type { Store } from '../../../src/ports/store.ts';
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts';
import type { Command, Setup } from './commands.ts';
import { World } from './world.ts';

/** Opens a store for all tests of a file. Returns a function that runs one sequence on it, and rejects when a promise is broken. */
export function playOnStore() {
  const folder = mkdtempSync(join(tmpdir(), 'throughline-model-'));
  /** The time of the current sequence. All sequences share the store, and its leases use this time. */
  let time = () => 0;
  let store: Store;
  let count = 0;

  beforeAll(async () => {
    const clock = { now: () => time(), monotonic: () => time() };
    store = await openSqliteStore({ file: join(folder, 'model.db'), clock, boot: 'boot' });
  });
  afterAll(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });

  return async (setup: Setup, commands: readonly Command[], note: (line: string) => void = () => {}): Promise<void> => {
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
  };
}
