import { describe, expect } from 'vitest';
import { Place } from '../harness/place.ts';
import { stormOver } from './suite.ts';

const LONG = process.env.THROUGHLINE_LONG === '1';
const SIZE = LONG
  ? { kills: 4_000, conversations: 40, rageMs: 600_000, stormMs: 3_600_000 }
  : { kills: 100, conversations: 10, rageMs: 14_000, stormMs: 900_000 };

describe('a storm of kills over one home', () =>
  stormOver(
    SIZE,
    async () => new Place(),
    async (place) => expect(await place.rows('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]),
  ));
