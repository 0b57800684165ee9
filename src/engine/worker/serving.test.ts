import { expect, test } from 'vitest';
import type { NextClaim } from '../../ports/store/leases.ts';
import { Line } from './serving.ts';
import { Slots } from './slots.ts';

const MOST = { perOwner: 8, all: 64 };

const waiting = (owner: string, count: number): NextClaim[] =>
  Array.from({ length: count }, (_, i) => ({ owner, conversation: `${owner}-${i + 1}` }));

/** Who gets slots until no listed owner may have one, or the store must be read again. */
function served(slots: Slots, line: Line): string[] {
  const given: string[] = [];
  while (!line.isSpent) {
    const next = slots.isFree ? line.next(slots) : null;
    if (next === null) break;
    slots.give(next.owner);
    given.push(next.conversation);
  }
  return given;
}

const slots = (parallel: number, perOwner = parallel) => new Slots({ parallel, perOwner }, () => {});

test('owners take turns, as far as the slots allow; for one owner, conversations from the store come last', () => {
  const here = [{ owner: 'ann', conversation: 'ann-here', isOwn: false }];
  const line = new Line(here, [...waiting('ann', 2), ...waiting('bob', 3)], MOST);
  expect(served(slots(9), line)).toEqual(['ann-here', 'bob-1', 'ann-1', 'bob-2', 'ann-2', 'bob-3']);
  expect(line.isSpent).toBe(false);
});

test('an owner who has reached the slot limit is skipped', () => {
  expect(served(slots(9, 2), new Line([], [...waiting('ann', 5), ...waiting('bob', 1)], MOST))).toEqual([
    'ann-1',
    'bob-1',
    'ann-2',
  ]);
});

test('the store is read again when it may have more conversations of an owner', () => {
  const line = new Line([], [...waiting('ann', 8), ...waiting('bob', 1)], MOST);
  expect(served(slots(20), line)).toEqual(['ann-1', 'bob-1', ...[2, 3, 4, 5, 6, 7, 8].map((n) => `ann-${n}`)]);
  expect(line.isSpent).toBe(true);
});

test('the store is read again before an owner gets a second slot while unlisted owners may have none', () => {
  const owners = Array.from({ length: 9 }, (_, i) => `owner-${i}`);
  // The last one has only one place in a line of 64.
  const line = new Line([], owners.flatMap((owner) => waiting(owner, 8)).slice(0, 64), MOST);
  expect(served(slots(20), line)).toEqual(owners.slice(0, 8).map((owner) => `${owner}-1`));
  expect(line.isSpent).toBe(true);
});

test('after a conversation that this process waits for, the next one of its owner is looked up', () => {
  const line = new Line([{ owner: 'ann', conversation: 'own', isOwn: true }], waiting('bob', 2), MOST);
  expect(served(slots(9), line)).toEqual(['own']);
  expect(line.isSpent).toBe(true);
});
