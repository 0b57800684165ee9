import { afterAll, beforeAll, test } from 'vitest';
import type { Store } from '../../src/ports/store.ts';
import { openPostgresStore } from '../../src/stores/postgres/store.ts';
import { NO_POSTGRES, postgresServer } from '../postgres/server.ts';
import { storeSequences } from './store/sequences.ts';

const server = postgresServer();
const clock = { time: 1_000 };
let stores: Store[] = [];

beforeAll(async () => {
  if (NO_POSTGRES !== null) return;
  const url = server().url(await server().database());
  const times = { now: () => clock.time, monotonic: () => clock.time };
  const open = () => openPostgresStore({ url, clock: times, connections: 4 });
  stores = [await open(), await open()];
});

afterAll(async () => {
  for (const store of stores) await store.close();
});

test('a PostgreSQL store follows the rules, whatever happens, in any order', {
  timeout: 3_600_000,
}, (context) => {
  if (NO_POSTGRES !== null) context.skip(NO_POSTGRES);
  // Few sequences, because here a statement is a message to another process and takes about ten times as long.
  return storeSequences({ name: 'postgres store', runs: 40, clock, stores: () => stores });
});
