import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hasEnded, mayBecome, TURN_ENDS, TURN_STATES, type TurnState } from './turn.ts';

test('a turn that has ended becomes nothing else', () => {
  for (const end of TURN_ENDS) {
    expect(hasEnded(end)).toBe(true);
    for (const state of TURN_STATES) expect(mayBecome(end, state)).toBe(false);
  }
});

test('a queued turn never completes and is never interrupted: it has not begun', () => {
  expect(TURN_STATES.filter((state) => mayBecome('queued', state))).toEqual(['running', 'failed', 'cancelled']);
});

test('every walk through the states has at most one end, and it is the last', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...TURN_STATES)), (wishes) => {
      const walk: TurnState[] = ['queued'];
      for (const wish of wishes) if (mayBecome(walk.at(-1) as TurnState, wish)) walk.push(wish);
      const ends = walk.filter(hasEnded);
      expect(ends.length).toBeLessThanOrEqual(1);
      if (ends.length === 1) expect(hasEnded(walk.at(-1) as TurnState)).toBe(true);
    }),
  );
});

test('every open state can reach every end', () => {
  for (const state of ['running', 'waiting'] as const)
    for (const end of TURN_ENDS) expect(mayBecome(state, end)).toBe(true);
});
