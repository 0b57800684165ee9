import type { Conversation, Session, TurnOutline } from 'throughline/client';
import { expect, test } from 'vitest';
import { NO_USAGE } from '../../../src/core/turn/usage.ts';
import { forksOf, lineageRows, spansOf } from './lanes.ts';

function turns(...sessions: (string | null)[]): TurnOutline[] {
  return sessions.map((sessionId, index) => ({
    ...{ id: `t${index + 1}`, n: index + 1, state: sessionId === null ? 'cancelled' : 'completed', agent: 'a' },
    ...{
      sessionId,
      imported: false,
      usage: NO_USAGE,
      startedAt: 1,
      endedAt: 2,
      rung: sessionId === null ? null : 'live',
    },
  }));
}

const NO_SESSIONS: readonly Session[] = [];
const drawn = (...sessions: (string | null)[]) =>
  lineageRows(spansOf(turns(...sessions), NO_SESSIONS)).map(({ item, lane, from, through }) => {
    const { from: first, to } = item as { from: number; to: number };
    return [`${first}-${to}`, lane, from, through.join()];
  });

test('turns of one session are one span, and a dropped prompt does not separate them', () => {
  expect(drawn('a', 'a', null, 'a')).toEqual([['1-4', 0, null, '']]);
});

test('sessions that only follow each other share one lane', () => {
  expect(drawn('a', 'b', 'c', 'c')).toEqual([
    ['1-1', 0, null, ''],
    ['2-2', 0, 0, ''],
    ['3-4', 0, 0, ''],
  ]);
});

test('a session that is used again later keeps its lane, and the other one is beside it', () => {
  expect(drawn('a', 'b', 'a', 'c')).toEqual([
    ['1-1', 0, null, ''],
    ['2-2', 1, 0, '0'],
    ['3-3', 0, 1, ''],
    ['4-4', 0, 0, ''],
  ]);
});

test('a session has one colour, also when only its id has changed', () => {
  const opened = (id: string, openedAt: number, origin = 'new', parent: string | null = null) =>
    ({ id, openedAt, origin, parent }) as Session;
  const sessions = [opened('c', 3), opened('b', 2, 'rotated', 'a'), opened('a', 1)];
  const spans = spansOf(turns('a', 'b', 'c', 'a'), sessions);
  expect(spans.map(({ order }) => order)).toEqual([0, 0, 1, 0]);
});

test('forks are after the span with their turn, and the parent is first', () => {
  const parent = { id: 'p', title: 'Before', key: null, parent: null };
  const own = { id: 'x', title: 'Here', key: null, parent: { conversationId: 'p', n: 7 } };
  const child = { id: 'y', title: '', key: 'child', parent: { conversationId: 'x', n: 2 } };
  const all = [parent, own, child] as unknown as Conversation[];
  const rows = lineageRows(spansOf(turns('a', 'a', 'b'), NO_SESSIONS), forksOf(all[1] as Conversation, all));
  expect(rows.map(({ item }) => (item.kind === 'span' ? item.from : `${item.kind} ${item.title}`))).toEqual([
    'parent Before',
    1,
    'child child',
    3,
  ]);
});
