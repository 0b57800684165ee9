import { expect, test } from 'vitest';
import { session } from '../../../test/values/arbitrary.ts';
import { isUsable, SESSION_STATES, stateWithoutProcess } from './session.ts';

test('a session that diverged, was lost or was closed is never used again', () => {
  const usable = SESSION_STATES.filter((state) => isUsable(session(0, { state })));
  expect(usable).toEqual(['live', 'dormant', 'unsettled']);
});

test.each([
  [{ reopens: true, unsettled: false }, 'dormant'],
  [{ reopens: true, unsettled: true }, 'unsettled'],
  [{ reopens: false, unsettled: false }, 'lost'],
  [{ reopens: false, unsettled: true }, 'lost'],
] as const)('a session whose process has ended, %j, is %s', (ended, state) => {
  expect(stateWithoutProcess(ended)).toBe(state);
});
