import { expect, test } from 'vitest';
import { faultOf } from '../../../test/values/thrown.ts';
import { parseBudget } from '../limits/budget.ts';
import { parsePlan } from './task-plan.ts';

const codeAndMessage = (input: unknown) => {
  const { code, message } = faultOf(() => parsePlan(input)) ?? { code: 'none', message: '' };
  return `${code}: ${message}`;
};

test('a goal alone is a plan, and everything else has a default', () => {
  expect(parsePlan({ goal: 'Say hello.' })).toEqual({
    parallel: null,
    tasks: [
      {
        name: null,
        goal: 'Say hello.',
        gate: null,
        milestone: null,
        agent: null,
        sessions: null,
        session: null,
        newSession: null,
        maxIterations: 10,
        budget: { costMicros: null, tokens: null },
        after: [],
        retryInterrupted: 0,
        cwd: null,
        sandbox: null,
        permissions: 'deny',
      },
    ],
  });
});

test('a field of a task overrides the defaults of its plan', () => {
  const { tasks, parallel } = parsePlan({
    parallel: 3,
    defaults: { agent: 'claude', gate: 'npm test', budget: '2 USD' },
    tasks: [
      { goal: 'a', name: 'a' },
      { goal: 'b', agent: 'other', gate: { command: 'true', timeout: 5 }, after: 'a' },
    ],
  });
  expect(parallel).toBe(3);
  expect(tasks).toMatchObject([
    {
      agent: 'claude',
      gate: { kind: 'command', command: 'npm test', timeoutMs: 600_000 },
      budget: { costMicros: 2e6 },
    },
    { agent: 'other', gate: { command: 'true', timeoutMs: 5_000 }, after: ['a'] },
  ]);
});

test('a task that says "none" has none, whatever the defaults are', () => {
  const defaults = { agent: 'claude', gate: 'npm test', budget: '2 USD', milestone: 'm', cwd: '/x', maxIterations: 3 };
  const none = { agent: null, gate: null, budget: null, milestone: null, cwd: null, maxIterations: null };
  const { tasks } = parsePlan({ defaults, tasks: [{ goal: 'a', ...none }] });
  expect(tasks).toEqual(parsePlan({ goal: 'a' }).tasks);
});

test('a plan that could never run is refused, with a hint', () => {
  const [long, zero] = ['x'.repeat(30_001), 'echo \0'];
  for (const gate of [long, zero, { agent: 'a', ask: 'x'.repeat(100_001) }]) {
    expect(faultOf(() => parsePlan({ goal: 'a', gate }))).toMatchObject({ code: 'invalid', hint: expect.any(String) });
  }
});

test('an agent can be the gate', () => {
  const { tasks } = parsePlan({ goal: 'a', gate: { agent: 'judge', ask: 'Is it good?' } });
  expect(tasks[0]?.gate).toEqual({ kind: 'agent', agent: 'judge', ask: 'Is it good?' });
});

const a = { name: 'a', goal: 'a' };
test.each<[string, unknown, string]>([
  ['no task', { tasks: [] }, '"tasks" must be a list of at least one task'],
  [
    'too many',
    Array.from({ length: 1_001 }, () => ({ goal: 'a' })),
    'A plan may have at most 1000 tasks; this one has 1001.',
  ],
  [
    'too many names in "after"',
    [a, { goal: 'b', after: Array.from({ length: 5_001 }, () => 'a') }],
    'A plan may have at most 5000 names in all "after" lists; this one has 5001.',
  ],
  ['no goal', [{}], '[0].goal: A task needs a goal'],
  ['an unknown field', { goal: 'a', colour: 1 }, 'colour: Unknown field "colour"'],
  ['an unknown field of the plan', { tasks: [a], colour: 1 }, 'Unknown field "colour"'],
  [
    'a default that only a task can have',
    { tasks: [a], defaults: { goal: 'x' } },
    'defaults.goal: Unknown field "goal"',
  ],
  ['two tasks with one name', [a, a], '[1].name: Two tasks are called "a"'],
  ['a stranger', [{ goal: 'b', after: 'x' }], 'No task of this plan is called "x"'],
  ['itself', [{ ...a, after: ['a'] }], 'wait for each other: a → a'],
  [
    'a circle',
    [
      { ...a, after: 'c' },
      { goal: 'b', name: 'b', after: 'a' },
      { goal: 'c', name: 'c', after: 'b' },
    ],
    'wait for each other: a → c → b → a',
  ],
  [
    'one session for two tasks',
    [
      { ...a, session: 's' },
      { goal: 'b', session: 's' },
    ],
    'is already named for "a"',
  ],
  ['a session in a milestone', [{ ...a, session: 's', milestone: 'm' }], 'uses the sessions of the milestone'],
  [
    'a new session in a milestone',
    [{ ...a, newSession: 's', milestone: 'm' }],
    '[0].newSession: A task of a milestone',
  ],
  [
    'an existing and a new session',
    { goal: 'a', session: 's', newSession: 't' },
    'newSession: A task either continues',
  ],
  [
    'the id of a session for tasks that open many',
    { goal: 'a', newSession: 's', sessions: 'fresh' },
    '"sessions": "fresh"',
  ],
  [
    'the id of a session, when the defaults open many',
    { defaults: { sessions: 'blank' }, tasks: [{ goal: 'a', newSession: 's' }] },
    'tasks[0].newSession: A task with "sessions": "blank"',
  ],
  [
    'one id for two new sessions',
    [
      { ...a, newSession: 's' },
      { goal: 'b', newSession: 's' },
    ],
    '[1].newSession: The session "s" is already named for "a"',
  ],
  [
    'one id for an existing session and a new one',
    [
      { ...a, session: 's' },
      { goal: 'b', newSession: 's' },
    ],
    '[1].newSession: The session "s" is already named for "a"',
  ],
  [
    'two directories',
    [
      { ...a, milestone: 'm', cwd: '/x' },
      { goal: 'b', milestone: 'm' },
    ],
    'have the same "cwd"',
  ],
  ['a gate of two kinds', { goal: 'a', gate: { command: 'x', agent: 'y' } }, 'gate: A gate must be a command'],
  ['a budget of nothing', { goal: 'a', budget: 5 }, 'budget: A budget needs a unit'],
  ['no iteration', { goal: 'a', maxIterations: 0 }, 'maxIterations: "maxIterations" must be a whole number from 1'],
  [
    'an unknown mode',
    { goal: 'a', sessions: 'new' },
    'sessions: "sessions" must be one of kept, fresh, blank, or null, not "new"',
  ],
  ['an unpaired surrogate', { goal: 'a\ud800' }, 'goal: The goal contains an unpaired surrogate, U+D800 at index 1.'],
])('refuses %s', (_, plan, message) => {
  expect(codeAndMessage(plan)).toContain('invalid: ');
  expect(codeAndMessage(plan)).toContain(message);
});

test('a long chain of tasks is not a cycle', () => {
  const chain = Array.from({ length: 1_000 }, (_, i) => ({
    goal: 'x',
    name: `t${i}`,
    after: i === 0 ? [] : [`t${i - 1}`],
  }));
  expect(parsePlan(chain.toReversed()).tasks).toHaveLength(1_000);
});

test.each<[unknown, object | null]>([
  ['$2.50', { costMicros: 2_500_000, tokens: null }],
  ['2.5 USD', { costMicros: 2_500_000, tokens: null }],
  ['0.000001usd', { costMicros: 1, tokens: null }],
  ['50000 tokens', { costMicros: null, tokens: 50_000 }],
  ['50k tokens', { costMicros: null, tokens: 50_000 }],
  [
    { usd: 1, tokens: 5 },
    { costMicros: 1_000_000, tokens: 5 },
  ],
  ['5', null],
  ['$5 tokens', null],
  ['5k USD', null],
  ['0 USD', null],
  ['-1 USD', null],
  [{ eur: 5 }, null],
  [{}, null],
])('the budget %j is %j', (input, budget) => {
  expect(parseBudget(input)).toEqual(budget);
});
