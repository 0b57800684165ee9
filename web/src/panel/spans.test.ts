import type { Conversation, TurnOutline } from 'throughline/client';
import { expect, test } from 'vitest';
import { forksOf, spansOf, withForks } from './spans.ts';

/** Turns one after the other: how each got its context, and by which agent. */
function turns(...rungs: (Partial<TurnOutline> | TurnOutline['rung'])[]): TurnOutline[] {
  return rungs.map((rung, index) => {
    const facts = rung === null || typeof rung === 'string' ? { rung } : rung;
    const given = facts.rung === 'transcript' || facts.rung === 'rehydrate' ? facts.rung : null;
    return { n: index + 1, agent: 'claude', sessionId: 's', imported: false, given, ...facts } as TurnOutline;
  });
}

const drawn = (...all: Parameters<typeof turns>) =>
  spansOf(turns(...all)).map(({ strand, from, to, how }) => `${strand}: ${from}-${to} ${how}`);

test('a session that was rebuilt is a strand of its own, although its id is the same', () => {
  expect(drawn('new', 'live', 'rehydrate', 'live')).toEqual(['1: 1-2 new', '2: 3-4 rehydrate']);
});

test('a session that its agent reopened, also under another id, stays one strand', () => {
  expect(drawn('new', 'resume', { rung: 'live', sessionId: 'rotated' })).toEqual(['1: 1-3 new']);
});

test('a dropped prompt does not separate turns', () => {
  expect(drawn('new', null, 'live')).toEqual(['1: 1-3 new']);
});

test('an agent that comes back has a strand of its own each time', () => {
  expect(drawn('new', { rung: 'transcript', agent: 'codex' }, 'live')).toEqual([
    '1: 1-1 new',
    '2: 2-2 transcript',
    '3: 3-3 handoff',
  ]);
});

test('imported turns come before the session that was told them', () => {
  expect(drawn({ rung: null, imported: true }, { rung: null, imported: true }, 'transcript')).toEqual([
    '1: 1-2 imported',
    '2: 3-3 transcript',
  ]);
});

test('forks are after the span with their turn, and the parent is first', () => {
  const parent = { id: 'p', title: 'Before', key: null, parent: null };
  const own = { id: 'x', title: 'Here', key: null, parent: { conversationId: 'p', n: 7 } };
  const child = { id: 'y', title: '', key: 'child', parent: { conversationId: 'x', n: 2 } };
  const all = [parent, own, child] as unknown as Conversation[];
  const items = withForks(spansOf(turns('new', 'live', 'transcript')), forksOf(all[1] as Conversation, all));
  expect(items.map((item) => (item.kind === 'span' ? item.from : `${item.kind} ${item.title}`))).toEqual([
    'parent Before',
    1,
    'child child',
    3,
  ]);
});
