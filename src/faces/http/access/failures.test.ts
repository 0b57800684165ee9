import { describe, expect, test } from 'vitest';
import { clientAddress, publicDoor } from './door.ts';
import { delayOf, Failures } from './failures.ts';

const never = new AbortController().signal;
/** Ends every wait at once. */
const gone = AbortSignal.abort();

function failuresAt(clock = { now: 0 }) {
  const lines: Record<string, unknown>[] = [];
  const failures = new Failures({ warn: (facts: object) => void lines.push({ ...facts }) }, () => clock.now);
  return { failures, lines, clock };
}

test.each([
  [1, 0],
  [3, 0],
  [4, 100],
  [5, 200],
  [9, 3_200],
  [10, 5_000],
  [5_000, 5_000],
])('the answer to failure %i is delayed by %i ms', (failures, ms) => {
  expect(delayOf(failures)).toBe(ms);
});

test('a series for one key is logged a few times, without anything but the id', async () => {
  const { failures, lines } = failuresAt();
  for (let n = 0; n < 250; n += 1) await failures.add({ by: 'key 0123', address: null }, gone);
  expect(lines).toEqual([1, 10, 100].map((count) => ({ by: 'key 0123', failures: count })));
});

test('guesses with many ids fill neither the log nor the memory', async () => {
  const { failures, lines, clock } = failuresAt();
  for (let n = 0; n < 5_000; n += 1) await failures.add({ by: `key ${n}`, address: null }, never);
  expect(lines).toHaveLength(20);
  clock.now += 60_000;
  // The first of them was forgotten: its count starts again at one.
  await failures.add({ by: 'key 0', address: null }, never);
  expect(lines.at(-1)).toEqual({ by: 'key 0', failures: 1, linesLeftOut: 4_980 });
});

test('failures are forgotten after five minutes without another one', async () => {
  const { failures, lines, clock } = failuresAt();
  for (let n = 0; n < 5; n += 1) await failures.add({ by: 'token', address: null }, gone);
  clock.now += 300_000;
  await failures.add({ by: 'token', address: null }, never);
  expect(lines.at(-1)).toEqual({ by: 'token', failures: 1 });
});

test('only a limited number of answers is delayed at a time; other requests must try again later', async () => {
  const { failures } = failuresAt();
  const stop = new AbortController();
  const all = Array.from({ length: 120 }, () => failures.add({ by: 'token', address: null }, stop.signal));
  await Promise.resolve();
  stop.abort();
  const refused = (await Promise.allSettled(all)).filter(({ status }) => status === 'rejected');
  expect(refused).toHaveLength(120 - 3 - 100);
  expect(refused[0]).toMatchObject({ reason: { code: 'too_many' } });
});

test('a request without credentials is not delayed; an address is delayed whichever credentials it uses', async () => {
  const { failures } = failuresAt();
  for (let n = 0; n < 50; n += 1) await failures.add({ by: null, address: null }, never);
  for (let n = 0; n < 3; n += 1) await failures.add({ by: `key ${n}`, address: '192.0.2.1' }, never);
  const before = performance.now();
  await failures.add({ by: 'key 9', address: '192.0.2.1' }, never);
  expect(performance.now() - before).toBeGreaterThan(90);
});

describe('the address of a client', () => {
  const url = new URL('https://agents.example.org');
  const addressOf = (header: string | undefined, trustsProxy = true) =>
    clientAddress((name) => (name === 'x-forwarded-for' ? header : undefined), publicDoor(url, { trustsProxy }));

  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['10.9.9.9, 192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:DB8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['192.0.2.7, unknown', null],
    ['', null],
    [undefined, null],
  ])('%j is %j', (header, address) => {
    expect(addressOf(header)).toBe(address);
  });

  test('is not read from the header if no proxy is trusted', () => {
    expect(addressOf('192.0.2.7', false)).toBeNull();
  });
});
