import { expect, test } from 'vitest';
import { ERROR_CODES } from '../../core/errors.ts';
import { EXIT, exitOfTurn } from './exit-codes.ts';

test('every code ends with one of the documented numbers, and never as done', () => {
  for (const code of ERROR_CODES) expect([1, 2, 3, 4, 5, 6, 7, 130], code).toContain(EXIT[code]);
});

test('an interrupted turn has one exit code, whatever caused it', () => {
  expect(exitOfTurn('interrupted', { code: 'agent_died', message: '' })).toBe(7);
  expect(exitOfTurn('failed', { code: 'agent_died', message: '' })).toBe(1);
  expect(exitOfTurn('failed', { code: 'restore_failed', message: '' })).toBe(6);
  expect(exitOfTurn('cancelled', { code: 'cancelled', message: '' })).toBe(130);
  expect(exitOfTurn('completed', null)).toBe(0);
  expect(exitOfTurn('failed', null)).toBe(1);
});
