import type { RecordPart } from 'throughline/client';
import { expect, test } from 'vitest';
import { findTurns, nextOf, type OpenParts, type Sought } from './find.ts';

const SAID = Array.from({ length: 450 }, (_, index) => ({
  n: index + 1,
  prompt: [{ type: 'text', text: `Prompt ${index + 1}` }],
  reply: (index + 1) % 150 === 0 ? 'The codeword is OSPREY.' : 'Noted.',
}));
const records = async () => [];
const turns = async (_id: string, { before = 'end', limit = 100 }: { before?: number | 'end'; limit?: number } = {}) =>
  SAID.filter(({ n }) => before === 'end' || n < before).slice(-limit) as never;

const how = (signal = new AbortController().signal, open: OpenParts = new Map()) => ({ signal, open });

const typed = (text: string): Sought => ({ text, isWords: false });

test('every turn is searched, the last ones first, ignoring case', async () => {
  const steps = await Array.fromAsync(findTurns({ turns, records }, 'c', typed('osprey'), how()));
  expect(steps.map(({ from }) => from)).toEqual([251, 51, 1]);
  expect(steps[0]?.turns).toEqual([300, 450]);
  expect(steps.at(-1)?.turns).toEqual([150, 300, 450]);
});

test('prompts are searched as well', async () => {
  const steps = await Array.fromAsync(findTurns({ turns, records }, 'c', typed('prompt 77'), how()));
  expect(steps.at(-1)?.turns).toEqual([77]);
});

test('words from the search page are found separately, in the whole turn', async () => {
  const found = async (text: string, isWords: boolean) =>
    (await Array.fromAsync(findTurns({ turns, records }, 'c', { text, isWords }, how()))).at(-1)?.turns;
  expect(await found('osprey prompt 30', true)).toEqual([300]);
  expect(await found('osprey prompt 300', false)).toEqual([]);
});

test('thoughts and the title, command and output of tools are searched, also in a running turn', async () => {
  const tool = { type: 'tool', id: 't', kind: 'execute', status: 'completed', target: null } as const;
  const said: Record<number, RecordPart> = {
    3: { type: 'thought', text: 'The kestrel may be meant.' },
    4: { ...tool, name: 'Run', input: { command: 'grep Kestrel *' }, output: null },
    5: { ...tool, name: 'Run', input: { other: 'kestrel' }, output: 'found a KESTREL' },
    6: { ...tool, name: 'Run', input: { other: 'kestrel' }, output: 'nothing' },
  };
  // A page of large values has few rows.
  const shortly = async (_id: string, { after = 0 }: { after?: number } = {}) => {
    const n = after + 1;
    return (n > 450 ? [] : [{ n, parts: said[n] === undefined ? [] : [said[n]] }]) as never;
  };
  const open = new Map([[450, [{ type: 'thought', text: 'kestrel' } as const]]]);
  const late = async (id: string, page: { after?: number } = {}) =>
    page.after === 449 ? ([] as never) : shortly(id, page);
  const steps = await Array.fromAsync(findTurns({ turns, records: late }, 'c', typed('kestrel'), how(undefined, open)));
  expect(steps.at(-1)?.turns).toEqual([3, 4, 5, 450]);
});

test('an aborted search stops', async () => {
  const stop = new AbortController();
  stop.abort();
  expect(await Array.fromAsync(findTurns({ turns, records }, 'c', typed('x'), how(stop.signal)))).toEqual([]);
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
