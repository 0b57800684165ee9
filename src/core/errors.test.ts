import { expect, test } from 'vitest';
import { asSentence, ERROR_CODES, failureOf, ThroughlineError } from './errors.ts';

test('an error becomes a failure without its cause', () => {
  const error = new ThroughlineError('conflict', 'Taken.', { hint: 'Use another.', cause: new Error('inside') });
  expect(failureOf(error)).toEqual({ code: 'conflict', message: 'Taken.', hint: 'Use another.' });
  expect(failureOf(new ThroughlineError('closed', 'Closed.'))).toEqual({ code: 'closed', message: 'Closed.' });
});

test('an error keeps its cause, and has none when it was given none', () => {
  const cause = new Error('inside');
  expect(new ThroughlineError('internal', 'x', { cause }).cause).toBe(cause);
  expect('cause' in new ThroughlineError('internal', 'x')).toBe(false);
});

test('a text becomes a sentence, so that a hint can follow', () => {
  expect(asSentence('the agent’s process ended by SIGKILL')).toBe('the agent’s process ended by SIGKILL.');
  for (const sentence of ['It ended.', 'Why?', 'No!', 'and so on…'])
    expect(asSentence(` ${sentence}\n`)).toBe(sentence);
});

test('no code is listed twice', () => {
  expect(new Set(ERROR_CODES).size).toBe(ERROR_CODES.length);
});
