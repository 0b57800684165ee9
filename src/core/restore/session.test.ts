import { expect, test } from 'vitest';
import { session } from '../../../test/values/arbitrary.ts';
import { isUsable, SESSION_STATES } from './session.ts';

test('a session that diverged, was lost or was closed is never used again', () => {
  const usable = SESSION_STATES.filter((state) => isUsable(session(0, { state })));
  expect(usable).toEqual(['live', 'dormant', 'unsettled']);
});
