import { expect, test } from 'vitest';
import { fileName, stateNow } from './standing.ts';

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
] as const)('read as %s, with %j it is %s', (read, now, state) => {
  expect(stateNow(read, { ...NOTHING, ...now })).toBe(state);
});

test.each([
  ['Broken build', 'Broken-build.json'],
  ['../../etc/passwd', 'etc-passwd.json'],
  ['日本', 'conversation.json'],
])('the export of %s', (title, name) => {
  expect(fileName(title)).toBe(name);
});
