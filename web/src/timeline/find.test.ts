import { expect, test } from 'vitest';
import { findTurns, nextOf } from './find.ts';

const SAID = Array.from({ length: 450 }, (_, index) => ({
  n: index + 1,
  prompt: [{ type: 'text', text: `Prompt ${index + 1}` }],
  reply: (index + 1) % 150 === 0 ? 'The codeword is OSPREY.' : 'Noted.',
}));
const turns = async (_id: string, { before = 'end', limit = 100 }: { before?: number | 'end'; limit?: number } = {}) =>
  SAID.filter(({ n }) => before === 'end' || n < before).slice(-limit) as never;

test('every turn is searched, those at the end first, and large and small letters are the same', async () => {
  const steps = await Array.fromAsync(findTurns({ turns }, 'c', 'osprey', new AbortController().signal));
  expect(steps.map(({ from }) => from)).toEqual([251, 51, 1]);
  expect(steps[0]?.turns).toEqual([300, 450]);
  expect(steps.at(-1)?.turns).toEqual([150, 300, 450]);
});

test('prompts are searched as well', async () => {
  const steps = await Array.fromAsync(findTurns({ turns }, 'c', 'prompt 77', new AbortController().signal));
  expect(steps.at(-1)?.turns).toEqual([77]);
});

test('a search that nobody wants any more stops', async () => {
  const stop = new AbortController();
  stop.abort();
  expect(await Array.fromAsync(findTurns({ turns }, 'c', 'x', stop.signal))).toEqual([]);
});

test.each([
  [[3, 7, 9], 7, 1, 9],
  [[3, 7, 9], 7, -1, 3],
  [[3, 7, 9], 9, 1, 3],
  [[3, 7, 9], 3, -1, 9],
  [[3, 7, 9], 5, 1, 7],
  [[], 5, 1, null],
] as const)('of %j, from %i by %i: %j', (found, at, step, next) => {
  expect(nextOf(found, at, step)).toBe(next);
});
