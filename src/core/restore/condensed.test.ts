import { expect, test } from 'vitest';
import { allCondensed, condensedTo, condensedWhenOpened, condensedWhenTold, turnCounts } from './condensed.ts';

test('an agent that condenses before it answers keeps the prompt; one that condenses later does not', () => {
  expect(condensedTo(5, null)).toBeNull();
  expect(condensedTo(5, 'before')).toBe(4);
  expect(condensedTo(5, 'turn')).toBe(5);
});

test.each([
  ['the storage shows nothing: what is recorded counts', { condensedTo: 3, watermark: 6 }, undefined, 3],
  ['no summary: it was rewound to before it', { condensedTo: 3, watermark: 6 }, false, 0],
  ['a summary that is recorded', { condensedTo: 3, watermark: 6 }, true, 3],
  ['a summary that was made unseen may cover everything', { condensedTo: 0, watermark: 6 }, true, 6],
  ['the repeated history names the last turn in it', { condensedTo: 0, watermark: 6 }, 4, 4],
  ['the later of two', { condensedTo: 5, watermark: 6 }, 4, 5],
  ['the repeated history has no summary, but the agent said that it made one', { condensedTo: 5, watermark: 6 }, 0, 5],
] as const)('opening again: %s', (_, known, shown, result) => {
  expect(condensedWhenOpened(known, shown)).toBe(result);
});

test.each([
  ['nothing is condensed', { condensedTo: 0, watermark: 5 }, 3, 9, 0],
  ['everything fits', { condensedTo: 3, watermark: 5 }, 0, 6, 3],
  ['turns 6 to 8 are left out', { condensedTo: 3, watermark: 5 }, 3, 9, 8],
  ['a condensed turn that did not complete is told again', { condensedTo: 6, watermark: 5 }, 0, 6, 5],
] as const)('telling what is missing: %s', (_, known, dropped, told, result) => {
  expect(condensedWhenTold(known, dropped, told)).toBe(result);
});

test.each([
  [6, 0, 0, { carried: 6, condensed: 0, dropped: 0 }],
  [6, 0, 4, { carried: 2, condensed: 4, dropped: 0 }],
  // The dropped turns are the oldest: it cannot have summarised what it was never told.
  [6, 3, 4, { carried: 2, condensed: 1, dropped: 3 }],
  [6, 5, 4, { carried: 1, condensed: 0, dropped: 5 }],
  [6, 6, 6, { carried: 0, condensed: 0, dropped: 6 }],
  [6, 0, 9, { carried: 0, condensed: 6, dropped: 0 }],
] as const)(
  'every turn is counted once: history %i, dropped %i, up to the last condensed one %i',
  (history, dropped, upTo, counts) => {
    expect(turnCounts(history, dropped, upTo)).toEqual(counts);
    expect(counts.carried + counts.condensed + counts.dropped).toBe(history);
  },
);

test('after a turn in which the agent condensed, no earlier turn is carried word for word', () => {
  const counts = { carried: 2, condensed: 3, dropped: 1, rung: 'live' };
  expect(allCondensed(counts)).toEqual({ carried: 0, condensed: 5, dropped: 1, rung: 'live' });
});
