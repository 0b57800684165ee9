import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { newcomer } from '../harness/newcomer.ts';
import { Place } from '../harness/place.ts';
import { until } from '../harness/until.ts';
import { gapless, inOrder, oneEnd } from '../storm/checks.ts';
import { readFacts } from '../storm/facts.ts';

const DAY_MS = 86_400_000;
const LEASE_MS = 60_000;
const JUMPS = [
  { whose: 'the worker that holds the lease', by: 'a day ahead', holder: DAY_MS, other: 0 },
  { whose: 'the worker that holds the lease', by: 'a day back', holder: -DAY_MS, other: 0 },
  { whose: 'another worker', by: 'a day ahead', holder: 0, other: DAY_MS },
  { whose: 'another worker', by: 'a day back', holder: 0, other: -DAY_MS },
];

describe('a wall clock that jumps', () => {
  test.concurrent.each(JUMPS)('$by, of $whose, expires no lease', async ({ holder, other }) => {
    await using place = new Place();
    const file = place.effects('c');
    const requests = [{ prompt: `/tool one ${file}\n/stream 10 80`, options: { requestId: 'one' } }];
    const worker = place.start('stepper', {
      key: 'c',
      requests,
      jumpMs: holder,
      engine: { leaseMs: LEASE_MS, maxWarm: 0 },
    });
    const { turn } = await worker.said('accepted');
    await until('the tool to run', () => place.ran('c').length === 1);

    const clock = { now: () => systemClock.now() + other, monotonic: () => systemClock.monotonic() };
    await using rival = await newcomer(place, { claims: 'all', leaseMs: LEASE_MS, maxWarm: 0 }, { clock });
    await rival.engine.submit('c', 'what comes after it', { requestId: 'two' });
    const one = await rival.end(String(turn));
    const two = await rival.run('c', 'and the last', { requestId: 'three' });
    expect({ state: one.state, attempt: one.attempt }).toEqual({ state: 'completed', attempt: 1 });
    expect(two.state).toBe('completed');

    const [facts] = await readFacts(place);
    if (facts === undefined) throw new Error('there is no conversation');
    expect([oneEnd, inOrder, gapless].flatMap((check) => check(facts))).toEqual([]);
    const epochs = facts.events.filter(({ n, epoch }) => n === 1 && epoch !== null).map(({ epoch }) => epoch);
    expect(new Set(epochs)).toEqual(new Set([1]));
    expect((await rival.engine.verify('c')).broken).toBeNull();
    expect(worker.stderr).toBe('');
  });
});
