import { describe, expect, test } from 'vitest';
import { openPostgresStore } from '../../../src/stores/postgres/store.ts';
import { NO_POSTGRES } from '../../postgres/server.ts';
import { onPostgres } from '../harness/on-postgres.ts';
import { Place } from '../harness/place.ts';
import { stormOver } from '../storm/suite.ts';

const LONG = process.env.THROUGHLINE_LONG === '1';
/** In the long run, as many as THROUGHLINE_ROUNDS says. */
const KILLS = Number(process.env.THROUGHLINE_ROUNDS ?? 2_000);
const SIZE = LONG
  ? { kills: KILLS, conversations: 40, rageMs: KILLS * 300, stormMs: 3_600_000 }
  : { kills: 30, conversations: 6, rageMs: 6_000, stormMs: 900_000 };

/** Reads every row and its JSON. */
async function isWhole(place: Place): Promise<void> {
  const store = await openPostgresStore({ url: place.opening.store ?? '', connections: 2 });
  expect(await store.inspect()).toEqual({ faults: [], damaged: [] });
  await store.close();
}

if (NO_POSTGRES === null) describe('a storm of kills over one PostgreSQL', () => stormOver(SIZE, newPlace, isWhole));
else test('a storm of kills over one PostgreSQL', (context) => context.skip(NO_POSTGRES ?? ''));

async function newPlace(): Promise<Place> {
  return new Place(await onPostgres());
}
