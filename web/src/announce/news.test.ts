import type { Receipt, Turn } from 'throughline/client';
import { expect, test } from 'vitest';
import { itemOf } from '../data/conversation/model.ts';
import { type ConversationState, NOTHING } from '../data/conversation/state.ts';
import { newsOf } from './news.ts';

const turn = (n: number, state: string, fields: object = {}) =>
  itemOf({ id: `t${n}`, n, state, sent: {}, imported: false, ...fields } as unknown as Turn);
const known = (
  items: readonly ReturnType<typeof turn>[],
  fields: Partial<ConversationState> = {},
): ConversationState => ({
  ...NOTHING,
  phase: 'ready',
  turns: new Map(items.map((item) => [item.turn.n, item])),
  last: Math.max(0, ...items.map((item) => item.turn.n)),
  ...fields,
});
const said = (before: ConversationState, now: ConversationState) =>
  newsOf(before, now).map(({ text, urgency }) => `${urgency}: ${text}`);

test.each([
  ['completed', 'polite: Turn 2 is answered.'],
  ['failed', 'assertive: Turn 2 failed.'],
  ['interrupted', 'assertive: Turn 2 was interrupted.'],
  ['cancelled', 'polite: Turn 2 was stopped.'],
])('a turn that ends as %s is announced once', (state, expected) => {
  const before = known([turn(1, 'completed'), turn(2, 'running')]);
  const now = known([turn(1, 'completed'), turn(2, state)]);
  expect(said(before, now)).toEqual([expected]);
  expect(said(now, known([turn(1, 'completed'), turn(2, state)]))).toEqual([]);
});

test('a turn that came and ended at once is announced, before those that wait', () => {
  const before = known([turn(1, 'completed')]);
  expect(said(before, known([turn(1, 'completed'), turn(2, 'completed'), turn(3, 'queued')]))).toEqual([
    'polite: Turn 2 is answered.',
  ]);
});

test('what was only loaded, replaced in the queue or brought in is not announced', () => {
  const before = known([turn(9, 'completed')]);
  expect(said(before, known([turn(3, 'completed'), turn(9, 'completed')]))).toEqual([]);
  expect(said(known([turn(1, 'queued')]), known([turn(1, 'cancelled', { sent: null })]))).toEqual([]);
  expect(said(before, known([turn(9, 'completed'), turn(10, 'completed', { imported: true })]))).toEqual([]);
  expect(said({ ...before, phase: 'loading' }, known([turn(9, 'completed'), turn(10, 'completed')]))).toEqual([]);
});

test('words of an answer are not announced', () => {
  const running = turn(1, 'running');
  const grown = { ...running, parts: [{ type: 'text', text: 'More.' } as const] };
  expect(said(known([running]), known([grown]))).toEqual([]);
});

test('a new question is announced, one that is known or answered is not', () => {
  const asked = (id: string, state = 'open') => ({ id, state }) as never;
  const before = known([], { permissions: [asked('a')] });
  expect(said(before, known([], { permissions: [asked('a'), asked('b')] }))).toEqual([
    'assertive: A question waits for your answer.',
  ]);
  expect(said(before, known([], { permissions: [asked('a'), asked('b', 'answered')] }))).toEqual([]);
});

test.each<readonly [string, Partial<Receipt>, readonly string[]]>([
  ['all', { rung: 'transcript', carried: 46 }, ['polite: A session was restored and knows all 46 turns.']],
  ['a part', { rung: 'transcript', carried: 40, dropped: 6 }, ['assertive: The new session knows 40 of 46 turns.']],
  ['nothing', { rung: 'fresh', dropped: 3 }, ['assertive: The new session knows 0 of 3 turns.']],
  ['not at all', { rung: 'none' }, ['assertive: No session could be given the history. Nothing was sent.']],
  ['a session that goes on', { rung: 'live', carried: 4 }, []],
  ['a first session', { rung: 'new' }, []],
])('a restore with %s of the history', (_name, fields, expected) => {
  const receipt = { carried: 0, condensed: 0, dropped: 0, ...fields } as Receipt;
  const before = known([turn(1, 'completed'), turn(2, 'running')]);
  const now = { ...before, receipts: new Map([[2, [receipt]]]) };
  expect(said(before, now)).toEqual(expected);
  expect(said({ ...before, last: 20 }, { ...now, last: 20 })).toEqual([]);
});
