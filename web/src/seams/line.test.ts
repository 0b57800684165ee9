import type { Receipt, Turn } from 'throughline/client';
import { expect, test } from 'vitest';
import { type LineTurn, laneOf, lineAfter, lineTurnOf, NO_LINE, shadeOf } from './line.ts';

const turn = (facts: Partial<LineTurn> = {}): LineTurn => ({
  ...{ n: 1, agent: 'claude', rung: 'live', given: null, imported: false },
  ...facts,
});
const given = (rung: LineTurn['given'], more: Partial<LineTurn> = {}) => turn({ rung, given: rung, ...more });

/** The strands of turns one after the other. */
function strands(...turns: LineTurn[]): number[] {
  let end = NO_LINE;
  return turns.map((each) => {
    end = lineAfter(end, each);
    return end.strand;
  });
}

test.each<[string, LineTurn, number]>([
  ['a live session goes on', turn(), 1],
  ['an agent that reopens its session keeps the strand', turn({ rung: 'resume' }), 1],
  ['files that were rebuilt begin a strand, although the session has the same id', given('rehydrate'), 2],
  ['a session that was told the history begins a strand', given('transcript'), 2],
  ['a replay begins a strand', given('replay'), 2],
  ['a session without the history begins a strand', given('fresh'), 2],
  ['a warm-up begins a strand, also if the turn then found a live session', turn({ given: 'transcript' }), 2],
  ['so does one before a prompt that was cancelled', turn({ rung: null, given: 'transcript' }), 2],
  ['another agent begins a strand, also in its live session', turn({ agent: 'codex' }), 2],
  ['a prompt that was never sent changes nothing', turn({ rung: null, agent: 'codex' }), 1],
])('%s', (_, next, strand) => {
  expect(strands(turn({ rung: 'new' }), next)).toEqual([1, strand]);
});

test('imported turns are one strand, and the session that is told them is the next', () => {
  const imported = turn({ rung: null, imported: true });
  expect(strands(imported, imported, given('transcript'), turn())).toEqual([1, 1, 2, 2]);
});

test('there is no line before the first turn that was sent', () => {
  expect(strands(turn({ rung: null }), turn({ rung: 'new' }))).toEqual([0, 1]);
});

test('the strand of an open turn is the same as when its outline is read', () => {
  const receipt = (facts: Partial<Receipt>) => ({ carried: 2, condensed: 0, dropped: 0, ...facts }) as Receipt;
  const open = { n: 3, agent: 'claude', imported: false, sent: null } as Turn;
  const told = [receipt({ turn: null, rung: 'transcript' }), receipt({ turn: 3, rung: 'live' })];
  expect(lineTurnOf(open, told)).toEqual({ ...turn({ n: 3 }), rung: 'live', given: 'transcript' });
  // An attempt told a new session, and the next one reopened that.
  const twice = [receipt({ turn: 3, rung: 'transcript' }), receipt({ turn: 3, rung: 'resume' })];
  expect(lineTurnOf(open, twice)).toMatchObject({ rung: 'resume', given: 'transcript' });
  expect(lineTurnOf(open, [receipt({ turn: 3, rung: 'none' })])).toMatchObject({ rung: null, given: null });
});

test('strands alternate between two lanes, and have four shades', () => {
  expect([1, 2, 3, 4, 5].map(laneOf)).toEqual(['left', 'right', 'left', 'right', 'left']);
  expect(shadeOf(1)).toBe(shadeOf(5));
  expect(new Set([1, 2, 3, 4].map(shadeOf)).size).toBe(4);
});
