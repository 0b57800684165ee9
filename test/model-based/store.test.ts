import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import type { Store } from '../../src/ports/store.ts';
import { openSqliteStore } from '../../src/stores/sqlite/store.ts';
import { storeSequences } from './store/sequences.ts';

const folder = mkdtempSync(join(tmpdir(), 'throughline-model-'));
const clock = { time: 1_000 };
const times = { now: () => clock.time, monotonic: () => clock.time };
let stores: Store[] = [];

beforeAll(async () => {
  const open = () => openSqliteStore({ file: join(folder, 'model.db'), clock: times, boot: 'boot' });
  // Two stores on one file, as two processes have them: no state may be in only one of them.
  stores = [await open(), await open()];
});

afterAll(async () => {
  for (const store of stores) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

test('the store follows the rules, whatever happens, in any order', { timeout: 3_600_000 }, () =>
  storeSequences({ name: 'store', runs: process.env.THROUGHLINE_LONG ? 2_500 : 1_500, clock, stores: () => stores }),
);
