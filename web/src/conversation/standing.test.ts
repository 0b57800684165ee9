import type { Task } from 'throughline/client';
import { expect, test } from 'vitest';
import { chainVerdict, fileName, stateNow, taskPathOf } from './standing.ts';

const NOTHING = { asks: false, isRunning: false, isQueued: false };

test.each([
  ['idle', {}, 'idle'],
  ['failed', {}, 'failed'],
  ['failed', { isRunning: true }, 'running'],
  ['running', { asks: true, isRunning: true }, 'asks'],
  ['idle', { isQueued: true }, 'queued'],
  // It was read while a turn was running, which has ended since.
  ['running', {}, 'idle'],
  ['asks', {}, 'idle'],
] as const)('a conversation read as %s, with %j, is shown as %s', (read, now, state) => {
  expect(stateNow(read, { ...NOTHING, ...now })).toBe(state);
});

const lost = { had: { seq: 9, turns: 2 }, has: { seq: 5, turns: 1 } };

test.each([
  ['an intact chain', {}, true, 'No event was changed, removed or added.'],
  ['a changed event', { broken: 2 }, false, 'Event 2, or one before it, was changed.'],
  [
    'lost events',
    { lost },
    false,
    'Events 6 to 9 are missing: it had 2 turns (9 events), and 1 turn (5 events) is left.',
  ],
])('%s is reported', (_name, check, isIntact, text) => {
  expect(chainVerdict({ head: '5:x', broken: null, ...check })).toEqual({ isIntact, text });
});

test.each([
  ['Broken build', 'Broken-build.json'],
  ['../../etc/passwd', 'etc-passwd.json'],
  ['日本', 'conversation.json'],
])('the export of %s', (title, name) => {
  expect(fileName(title)).toBe(name);
});

test('a conversation leads to its task', () => {
  const task = { id: 't', progress: { conversationId: 'c' } } as Task;
  expect(taskPathOf({ id: 'c', key: 'milestone/2.4' }, [task])).toBe('/tasks/t');
  expect(taskPathOf({ id: 'd', key: 'task/0198' }, [task])).toBe('/tasks/0198'); // older than the list of tasks
  expect(taskPathOf({ id: 'd', key: 'notes' }, [task])).toBeNull();
});
