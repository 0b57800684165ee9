import { expect, test } from 'vitest';
import { afterSending, changeChoice, chooseAgent, submitOptions } from './choices.ts';

test.each([
  ['nothing chosen', {}, 'claude', {}],
  ['choosing the current agent is not a handoff', { agent: 'claude' }, 'claude', {}],
  ['another agent', { agent: 'codex' }, 'claude', { agent: 'codex' }],
  ['a model of the agent', { of: 'claude', model: 'opus' }, 'claude', { model: 'opus' }],
  ['a model of an agent that does not answer', { of: 'claude', model: 'opus' }, 'codex', {}],
  [
    'a model of the agent that takes over',
    { agent: 'codex', of: 'codex', model: 'o' },
    'claude',
    { agent: 'codex', model: 'o' },
  ],
  ['a way to restore', { restore: { policy: 'auto' as const } }, null, { restore: { policy: 'auto' } }],
])('%s', (_name, next, agent, options) => {
  expect(submitOptions(next, agent)).toEqual(options);
});

test('model, mode and config stay chosen after sending, and nothing else does', () => {
  const next = { agent: 'a', of: 'a', model: 'm', restore: { lastTurns: 3 }, limits: { turnSeconds: 5 } };
  expect(afterSending(next)).toEqual({ of: 'a', model: 'm' });
});

test('choosing another agent clears model, mode and config', () => {
  expect(chooseAgent({ of: 'a', model: 'm', limits: { turnSeconds: 5 } }, 'b')).toEqual({
    agent: 'b',
    of: 'b',
    limits: { turnSeconds: 5 },
  });
  expect(chooseAgent({ agent: 'b', of: 'b' }, null)).toEqual({});
});

test('a choice can be taken back', () => {
  expect(changeChoice({ of: 'a', model: 'm' }, { model: undefined })).toEqual({ of: 'a' });
});
