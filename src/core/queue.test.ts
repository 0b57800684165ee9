import { describe, expect, test } from 'vitest';
import { parseQueueChanges, planQueue, queueChanged } from './queue.ts';

/** `b!`: edited; `b-`: dropped. Numbers are in the order of the alphabet. */
function planned(wanted: string) {
  const changes = wanted.split(' ').map((word) => ({
    turn: word.charAt(0),
    n: word.charCodeAt(0),
    ...(word.endsWith('!') && { prompt: [{ type: 'text', text: 'new' } as const] }),
    ...(word.endsWith('-') && { drop: true }),
  }));
  const { keep, replace, drop } = planQueue(changes);
  return [keep, replace, drop].map((turns) => turns.map(({ turn }) => turn).join('')).join('/');
}

describe('of the wanted queue', () => {
  test.each([
    ['a b c', 'abc//'],
    ['a b! c', 'a/bc/'],
    ['a b c!', 'ab/c/'],
    ['c a b', 'c/ab/'],
    ['b c a', 'bc/a/'],
    ['a c b', 'ac/b/'],
    ['a b- c', 'ac//b'],
    ['a- b- c-', '//abc'],
    ['c b- a', 'c/a/b'],
    ['a! b c', '/abc/'],
  ])('%s keeps, replaces and drops %s', (wanted, plan) => {
    expect(planned(wanted)).toBe(plan);
  });
});

test.each([
  ['notes', /must be a list/],
  [['notes'], /as an object, not "notes"/],
  [[{}], /turn id must be a non-empty text/],
  [[{ turn: 'a' }, { turn: 'a' }], /"a" is in the list twice/],
  [[{ turn: 'a', delete: true }], /no option "delete"/],
  [[{ turn: 'a', drop: 'yes' }], /"drop" must be true or false/],
  [[{ turn: 'a', drop: true, prompt: 'b' }], /not both/],
  [[{ turn: 'a', prompt: '' }], /prompt/i],
  [Array.from({ length: 201 }, (_, i) => ({ turn: `t${i}` })), /At most 200 .* not 201/],
])('the list %j is refused', (value, message) => {
  expect(() => parseQueueChanges(value)).toThrow(message);
});

test('a list may name new prompts as text, and turns that are not dropped', () => {
  expect(
    parseQueueChanges([
      { turn: 'a', prompt: 'Hi' },
      { turn: 'b', drop: false },
      { turn: 'c', drop: true },
    ]),
  ).toEqual([{ turn: 'a', prompt: [{ type: 'text', text: 'Hi' }] }, { turn: 'b' }, { turn: 'c', drop: true }]);
});

test('the error lists the differences, and only the first of many', () => {
  const gone = [{ n: 2, state: 'running' } as const];
  expect(queueChanged({ gone, unnamed: [7] }).message).toBe(
    'The queue differs from the list: turn 2 is running, turn 7 is queued and not in the list. Nothing was changed.',
  );
  expect(queueChanged({ gone: [], unnamed: [1, 2, 3, 4, 5, 6, 7] }).message).toMatch(/turn 5 .* and 2 more\./);
});
