import { expect, test } from 'vitest';
import { ThroughlineError } from '../core/errors.ts';
import type { Reason } from '../core/health.ts';
import { asideMs, SetAside } from './set-aside.ts';

test('the waiting time grows up to a limit', () => {
  const waits = Array.from({ length: 12 }, (_, index) => asideMs(index + 1) / 1_000);
  expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
  expect(asideMs(5_000)).toBe(300_000);
});

test('an item set aside is skipped for a while, reported each time, and counted until it works again', () => {
  let now = 0;
  const told: string[] = [];
  let reason: Reason | null = null;
  const report = (_part: string, given: Reason | null) => {
    reason = given;
  };
  const reasons = () => (reason === null ? [] : [reason]);
  const aside = new SetAside('conversation', {
    clock: { now: () => 0, monotonic: () => now },
    health: { report, reasons },
    onTrouble: ({ message }) => told.push(message),
  });
  const damaged = new ThroughlineError('storage_damaged', 'It is damaged.', { hint: 'Restore it.' });
  aside.add('a', damaged);
  aside.add('b', damaged);
  expect(aside.ids()).toEqual(['a', 'b']);
  const counted = expect.stringMatching(/^2 conversations are set aside/);
  expect(reasons()).toMatchObject([{ code: 'storage_damaged', message: counted, unready: false }]);
  now = 1_000;
  expect(aside.ids()).toEqual([]);
  aside.add('a', damaged);
  expect(aside.ids()).toEqual(['a']);
  expect(aside.why('b')).toMatchObject({ code: 'storage_damaged', hint: 'Restore it.' });
  expect(told.map((text) => text.replace('It is damaged.', ''))).toEqual([
    'The conversation a is set aside for 1 second. ',
    'The conversation b is set aside for 1 second. ',
    'The conversation a is set aside for 2 seconds. ',
  ]);
  aside.remove('a');
  expect(reasons()).toMatchObject([
    { message: expect.stringContaining('1 conversation is set aside, because what is stored of it') },
  ]);
  aside.remove('b');
  aside.remove('c');
  expect([aside.why('a'), reasons()]).toEqual([null, []]);
  aside.add('erased', damaged);
  now += 62_000;
  expect([aside.ids(), reasons()]).toEqual([[], []]);
});
