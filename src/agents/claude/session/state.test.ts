import { describe, expect, test } from 'vitest';
import { afterMessage, type ClaudeState, type MessageFacts, NEW_SESSION, next, type SessionState } from './state.ts';

type Turn = SessionState<string>['turn'];
const TURNS: readonly Turn[] = ['none', 'preparing', 'running', 'recording'];
const CLAUDES: readonly ClaudeState[] = ['silent', 'ready', 'finishing', 'ended'];

const at = (turn: Turn, claude: ClaudeState): SessionState<string> =>
  turn === 'none' ? { turn, claude } : { turn, claude, prompt: 'p1' };
const show = ({ turn, claude }: SessionState<string>) => `${turn} ${claude}`;

/** Every state that an event changes, with what it becomes. All others must stay as they are. */
const TRANSITIONS = [
  [
    { kind: 'prompted', prompt: 'p1' },
    {
      'none silent': 'preparing silent',
      'none ready': 'preparing ready',
      'none finishing': 'preparing finishing',
    },
  ],
  [{ kind: 'sent' }, { 'preparing silent': 'running silent', 'preparing ready': 'running ready' }],
  [
    { kind: 'answered', idle: true },
    {
      'running silent': 'recording silent',
      'running ready': 'recording ready',
      'running finishing': 'recording ready',
      'running ended': 'recording ended',
    },
  ],
  [
    { kind: 'answered', idle: false },
    {
      'running silent': 'recording silent',
      'running ready': 'recording finishing',
      'running finishing': 'recording finishing',
      'running ended': 'recording ended',
    },
  ],
  [
    { kind: 'finished' },
    Object.fromEntries(
      CLAUDES.flatMap((claude) => [
        [`preparing ${claude}`, `none ${claude}`],
        [`recording ${claude}`, `none ${claude}`],
      ]),
    ),
  ],
  [{ kind: 'reported', idle: false }, Object.fromEntries(TURNS.map((turn) => [`${turn} silent`, `${turn} ready`]))],
  [
    { kind: 'reported', idle: true },
    Object.fromEntries(
      TURNS.flatMap((turn) => [
        [`${turn} silent`, `${turn} ready`],
        [`${turn} finishing`, `${turn} ready`],
      ]),
    ),
  ],
  [
    { kind: 'ended' },
    Object.fromEntries(
      TURNS.flatMap((turn) => CLAUDES.map((claude) => [`${turn} ${claude}`, `${turn} ended`] as const)),
    ),
  ],
] as const;

test.each(TRANSITIONS)('%j changes these states and no others', (event, changes: Record<string, string>) => {
  for (const turn of TURNS) {
    for (const claude of CLAUDES) {
      const before = at(turn, claude);
      expect(show(next(before, event)), `from ${show(before)}`).toBe(changes[show(before)] ?? show(before));
    }
  }
});

test('a prompt stays the same from its beginning to its end', () => {
  let state: SessionState<string> = next<string>(NEW_SESSION, { kind: 'prompted', prompt: 'p1' });
  for (const event of [
    { kind: 'sent' },
    { kind: 'reported', idle: false },
    { kind: 'answered', idle: false },
  ] as const) {
    expect(state).toMatchObject({ prompt: 'p1' });
    state = next(state, event);
  }
  expect(state).toEqual({ turn: 'recording', claude: 'finishing', prompt: 'p1' });
  expect(next(state, { kind: 'finished' })).toEqual({ turn: 'none', claude: 'finishing' });
});

describe('after a message', () => {
  const QUIET: MessageFacts = { work: false, outcome: null, idle: false, usedTools: false };
  const RESULT: MessageFacts = { ...QUIET, work: true, outcome: 'completed' };

  test.each([
    ['work without a prompt', 'none', 'ready', { ...QUIET, work: true }, 'kill'],
    ['work before the prompt was sent', 'preparing', 'finishing', { ...QUIET, work: true }, 'kill'],
    ['a notice without a prompt', 'none', 'silent', QUIET, 'wait'],
    ['work on the prompt', 'running', 'ready', { ...QUIET, work: true }, 'wait'],
    ['idle after the result', 'running', 'ready', { ...RESULT, idle: true }, 'end'],
    ['a result without tools', 'running', 'ready', RESULT, 'end'],
    ['a result after tools', 'running', 'ready', { ...RESULT, usedTools: true }, 'wait'],
    ['idle after tools', 'running', 'ready', { ...RESULT, usedTools: true, idle: true }, 'end'],
    ['a failure', 'running', 'ready', { ...RESULT, outcome: 'failed' }, 'wait'],
    ['a failure, then idle', 'running', 'ready', { ...RESULT, outcome: 'failed', idle: true }, 'end'],
    ['a result of a Claude that does not report its state', 'running', 'silent', RESULT, 'end_later'],
    ['a result while Claude is being ended', 'running', 'ended', RESULT, 'end'],
    ['anything while the turn is recorded', 'recording', 'ready', { ...RESULT, idle: true }, 'wait'],
  ] as const)('%s', (_, turn, claude, heard, verdict) => {
    expect(afterMessage(at(turn, claude), heard)).toBe(verdict);
  });
});
