import type { Permission } from 'throughline/client';
import { describe, expect, test } from 'vitest';
import { decisionOf, whoOf } from './decision.ts';

const OPEN: Permission = {
  ...{ id: 'p', conversationId: 'c', turnId: 't', attempt: 1, title: 'Run it', toolCall: {}, state: 'open' },
  options: [
    { optionId: 'y', name: 'Yes', kind: 'allow_once' },
    { optionId: 'a', name: 'Always allow npm', kind: 'allow_always' },
    { optionId: 'n', name: 'No', kind: 'reject_once' },
  ],
  ...{ optionId: null, answeredBy: null, answeredFrom: null, reason: null, askedAt: 0, endedAt: null },
};
const said = (end: Partial<Permission>) => decisionOf({ ...OPEN, ...end }, 'ann')?.words ?? null;

test('an answer from elsewhere says from where', () => {
  const from = (answeredFrom: Permission['answeredFrom']) =>
    decisionOf({ ...OPEN, state: 'answered', optionId: 'y', answeredBy: 'ann by page', answeredFrom }, 'ann')?.from;
  expect([null, 'page', 'phone', 'command_line'].map((one) => from(one as Permission['answeredFrom']))).toEqual([
    ...[null, null, 'on the phone', 'on the command line'],
  ]);
});

describe('how a question ended', () => {
  test.each([
    [{}, null],
    [{ state: 'answered', optionId: 'y', answeredBy: 'ann by page' }, 'was allowed once by you'],
    [{ state: 'answered', optionId: 'a', answeredBy: 'ann by page' }, 'was allowed (“Always allow npm”) by you'],
    [{ state: 'answered', optionId: 'n', answeredBy: 'bob by page' }, 'was refused by bob'],
    [{ state: 'denied', reason: 'nobody can answer here' }, 'was not allowed: nobody can answer here'],
    [{ state: 'withdrawn', reason: 'the turn was cancelled' }, 'was not answered: the turn was cancelled'],
  ] as const)('%j', (end, words) => {
    expect(said(end)).toBe(words);
  });

  test.each([
    [{ rawInput: { command: 'npm test' } }, { what: 'npm test', isCode: true, doing: '' }],
    [
      { kind: 'edit', locations: [{ path: 'a.ts' }] },
      { what: 'a.ts', isCode: true, doing: 'Changing' },
    ],
    [
      { kind: 'read', locations: [{ path: 'a' }, { path: 'b' }] },
      { what: 'a and 1 more', doing: 'Reading' },
    ],
    [{ kind: 'think' }, { what: 'Run it', isCode: false, doing: '' }],
  ])('what was asked: %j', (toolCall, about) => {
    expect(decisionOf({ ...OPEN, toolCall, state: 'withdrawn' }, 'ann')).toMatchObject(about);
  });
});

test.each([
  [null, 'somebody'],
  ['ann', 'you'],
  ['bob', 'bob'],
  ['ann by page', 'you'],
  ['ann by token', 'you'],
  ['bob by key 0f', 'bob, with key 0f'],
])('who answered: %s', (by, words) => {
  expect(whoOf(by, 'ann')).toBe(words);
});
