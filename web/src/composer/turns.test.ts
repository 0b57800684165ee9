import type { Turn } from 'throughline/client';
import { expect, test } from 'vitest';
import { openTurns } from './turns.ts';

const turns = (...states: Turn['state'][]) => states.map((state, index) => ({ turn: { n: index + 1, state } as Turn }));
const numbers = ({ running, queued }: ReturnType<typeof openTurns>) => [running?.n ?? null, queued.map(({ n }) => n)];

test.each([
  ['nothing is open', turns('completed', 'failed'), false, [null, []]],
  ['one runs, two wait', turns('completed', 'running', 'queued', 'queued'), false, [2, [3, 4]]],
  ['one waits for an answer', turns('waiting', 'queued'), false, [1, [2]]],
  ['a prompt that is about to run does not wait', turns('completed', 'queued'), false, [null, []]],
  ['a prompt that is held up waits', turns('completed', 'queued'), true, [null, [2]]],
])('%s', (_name, items, isHeldUp, expected) => {
  expect(numbers(openTurns(items, isHeldUp))).toEqual(expected);
});

test('the order is that of the numbers, whichever way the turns were loaded', () => {
  expect(numbers(openTurns(turns('running', 'queued', 'queued').reverse(), false))).toEqual([1, [2, 3]]);
});
