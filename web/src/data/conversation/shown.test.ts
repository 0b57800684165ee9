import type { Conversation, Turn } from 'throughline/client';
import { expect, test } from 'vitest';
import { itemOf } from './model.ts';
import { isShown } from './shown.ts';

const completed = { state: 'completed', startedAt: 1, sent: { at: 1 } };
const running = { state: 'running', startedAt: 1, sent: { at: 1 } };
const queued = { state: 'queued', startedAt: null, sent: null };
/** Edited, moved or removed. */
const left = { state: 'cancelled', startedAt: null, sent: null };
const stopped = { state: 'cancelled', startedAt: 1, sent: { at: 1 } };
const stoppedEarly = { state: 'cancelled', startedAt: 1, sent: null };

const shownOf = (turns: object[], held: Partial<Conversation> = {}) => {
  const all = turns.map((fields, index) => itemOf({ n: index + 1, imported: false, ...fields } as Turn));
  const state = {
    turns: new Map(all.map((item) => [item.turn.n, item])),
    conversation: { delayed: null, stranded: null, ...held } as Conversation,
  };
  return turns.map((_, index) => index + 1).filter((n) => isShown(state, n));
};

test.each([
  ['what ended, and what runs', [completed, running], [1, 2]],
  ['not what waits', [completed, running, queued, queued], [1, 2]],
  ['the prompt that is about to run', [completed, queued, queued], [1, 2]],
  ['also after prompts that have left the queue', [completed, left, left, queued], [1, 4]],
  ['not what has left the queue', [running, left, queued, left], [1]],
  ['what was stopped, also before it was sent', [stopped, stoppedEarly], [1, 2]],
  ['an imported turn, whatever is known of it', [{ ...left, imported: true }], [1]],
])('%s', (_name, turns, expected) => expect(shownOf(turns)).toEqual(expected));

test('a prompt that is held up waits in the composer', () => {
  const delayed = { message: 'The limit of the day is reached.' } as unknown as Conversation['delayed'];
  expect(shownOf([completed, queued], { delayed })).toEqual([1]);
});
