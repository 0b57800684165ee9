import { afterAll, beforeAll, expect, test } from 'vitest';
import { open } from '../../../src/index.ts';
import { settingsFor } from '../harness/agents.ts';
import { marked } from '../harness/marked.ts';
import type { Place } from '../harness/place.ts';
import { Random, seedOfRun } from '../harness/random.ts';
import { failedHarmlessly, gapless, inOrder, knewAll, nothingLost, oneEnd, ranOnce, sawAll } from './checks.ts';
import { Storm } from './controller.ts';
import { type ConversationFacts, ends, readFacts } from './facts.ts';

export interface StormSize {
  readonly kills: number;
  readonly conversations: number;
  /** The planned time for all kills. A busy machine may take longer. */
  readonly rageMs: number;
  /** The limit for the whole storm. */
  readonly stormMs: number;
}

const CALM_MS = 120_000;

/** `newPlace`: makes a data home and its store. `whole`: checks the files of the store itself. */
export function stormOver(
  { kills, conversations, rageMs, stormMs }: StormSize,
  newPlace: () => Promise<Place>,
  whole: (place: Place) => Promise<void>,
): void {
  const seed = seedOfRun();
  let place: Place;
  let storm: Storm;
  let facts: readonly ConversationFacts[] = [];

  beforeAll(async () => {
    place = await newPlace();
    storm = new Storm(place, new Random(seed), conversations);
    const started = performance.now();
    await storm.begin({ workers: 3, submitters: 2, followers: 2 });
    await storm.rage(kills, rageMs);
    const calmed = performance.now();
    await storm.calm(CALM_MS);
    const rested = performance.now();
    await storm.askAll(CALM_MS);
    await storm.end(CALM_MS);
    facts = await readFacts(place);
    const seconds = (from: number, to: number) => `${((to - from) / 1000).toFixed(1)} s`;
    const killed = `${storm.crew.kills} kills, ${storm.crew.agentKills} of agents, ${storm.crew.freezes} freezes`;
    const times = `in ${seconds(started, calmed)}, calm after ${seconds(calmed, rested)}`;
    console.log(`seed ${seed} (THROUGHLINE_SEED): ${killed} ${times}`, ends(facts));
  }, stormMs);
  afterAll(() => place?.[Symbol.asyncDispose]());

  const each = (check: (facts: ConversationFacts) => string[]) => facts.flatMap(check);

  test('has killed enough processes, and some turns completed and some were interrupted', () => {
    expect(storm.crew.kills).toBeGreaterThanOrEqual(kills);
    const { completed, interrupted, failed, cancelled } = ends(facts);
    // How many depends on the machine. Without some of each, the other checks would prove nothing.
    expect(completed).toBeGreaterThan(kills / 100);
    expect(interrupted).toBeGreaterThan(0);
    expect({ cancelled }).toEqual({ cancelled: 0 });
    expect(failed, 'a turn fails only when its agent was killed').toBeLessThanOrEqual(storm.crew.agentKills);
    expect(each(failedHarmlessly)).toEqual([]);
  });

  test('loses nothing that was acknowledged', () => {
    expect(each((one) => nothingLost(one, storm.accepted.get(one.key) ?? []))).toEqual([]);
  });

  test('ends every turn once', () => {
    expect(each(oneEnd)).toEqual([]);
  });

  test('runs the turns of a conversation one at a time and in order', () => {
    expect(each(inOrder)).toEqual([]);
  });

  test('numbers events without gaps, and no epoch writes after a newer one', () => {
    expect(each(gapless)).toEqual([]);
  });

  test('shows followers every event once and in order, although they were killed', () => {
    const faults = each((one) =>
      [...storm.seen].flatMap(([reader, seen]) => sawAll(one, reader, seen.get(one.key) ?? [])),
    );
    expect(faults).toEqual([]);
  });

  test('runs no tool twice, and none that was denied', () => {
    expect(each(ranOnce)).toEqual([]);
  });

  test('leaves no session that lacks what its receipts say it has', () => {
    expect(each(knewAll)).toEqual([]);
  });

  test('leaves no agent behind', () => {
    expect(marked(place.mark)).toEqual([]);
  });

  test('leaves the database and every chain of events intact', async () => {
    await whole(place);
    await using tl = await open({ ...place.opening, settings: settingsFor(place.mark), engine: { maxRunning: 0 } });
    for (const key of storm.keys) expect((await tl.engine.verify(key)).broken, key).toBeNull();
  });

  test('lets no process write to stderr', () => {
    expect(place.complaints).toBe('');
  });
}
