import { expect, test } from 'vitest';
import { EXEC_MS } from '../../../core/sandbox/sandbox.ts';
import { TIMING } from './connection.ts';

test('a client waits longer for an answer than the longest command may take, so the answer arrives', () => {
  expect(TIMING.longMs).toBeGreaterThanOrEqual(EXEC_MS + 30_000);
});
