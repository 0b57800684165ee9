import { expect, test } from 'vitest';
import { itemsOf, type OutlineTurn } from './outline-items.ts';

const turn = (n: number, facts: Partial<OutlineTurn> = {}): OutlineTurn => ({
  ...{ n, agent: 'claude', rung: 'live', given: null, imported: false, isOut: false, isUnsent: false },
  ...facts,
});
const told = { rung: 'transcript', given: 'transcript' } as const;
const drawn = (turns: OutlineTurn[], forkedAt: number | null = null) =>
  itemsOf(turns, forkedAt).map(({ kind, n, how, above, strand }) =>
    kind === 'turn' ? `${n} on ${strand}` : `${how} before ${n}, ${above}-${strand}`,
  );

test('seams are where a session was reopened or told the history, and where another agent took over', () => {
  const turns = [turn(1, { rung: 'new' }), turn(2, { rung: 'resume' }), turn(3, told), turn(4, { agent: 'codex' })];
  expect(drawn(turns)).toEqual([
    ...['1 on 1', 'resume before 2, 1-1', '2 on 1'],
    ...['transcript before 3, 1-2', '3 on 2', 'handoff before 4, 2-3', '4 on 3'],
  ]);
});

test('a prompt that was cancelled before it was sent has no row, but the warm-up before it has', () => {
  const cancelled = turn(2, { rung: null, given: 'transcript', isOut: true });
  expect(drawn([turn(1, { rung: 'new' }), cancelled, turn(3)])).toEqual([
    '1 on 1',
    'transcript before 2, 1-2',
    '3 on 2',
  ]);
});

test('a fork has its seam after the last turn that was copied', () => {
  const copied = { rung: null, imported: true } as const;
  expect(drawn([turn(1, copied), turn(2, copied), turn(3, told)], 2)).toEqual([
    ...['1 on 1', '2 on 1', 'fork before 3, 1-2', '3 on 2'],
  ]);
});
