import { expect, test } from 'vitest';
import { hasEnded, TURN_ENDS, TURN_STATES } from './turn.ts';

test('a turn is open, or it has one of the ends', () => {
  expect(TURN_STATES.filter(hasEnded)).toEqual(TURN_ENDS);
  expect(TURN_STATES.filter((state) => !hasEnded(state))).toEqual(['queued', 'running', 'waiting']);
});
