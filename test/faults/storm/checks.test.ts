import { describe, expect, test } from 'vitest';
import { failedHarmlessly, gapless, inOrder, knewAll, nothingLost, oneEnd, ranOnce, sawAll } from './checks.ts';
import type { ConversationFacts, EventFact, TurnFact } from './facts.ts';

const KINDS = ['turn.queued', 'turn.started', 'turn.sent', 'turn.ended'];

function turn(n: number, changes: Partial<TurnFact> = {}): TurnFact {
  const known = Array.from({ length: n }, (_, i) => `w${i + 1}`);
  const record = { reply: `I have seen these codewords: ${known.join(', ')}.` };
  return { id: `t${n}`, n, requestId: `w${n}`, state: 'completed', failure: null, record, dropped: 0, ...changes };
}

/** Two turns without a fault. */
const WELL: ConversationFacts = {
  key: 'c',
  pending: 0,
  head: 2,
  turns: [turn(1), turn(2)],
  events: [1, 2].flatMap((n) =>
    KINDS.map((kind, i) => ({ seq: (n - 1) * 4 + i + 1, kind, n, epoch: kind === 'turn.queued' ? null : n })),
  ),
  watermarks: [1, 2],
  ran: ['w1', 'w2'],
};

const event = (at: number, changes: Partial<EventFact>) =>
  WELL.events.map((one) => (one.seq === at ? { ...one, ...changes } : one));
const renumbered = (events: readonly EventFact[]) => events.map((one, i) => ({ ...one, seq: i + 1 }));
const accepted = [1, 2].map((n) => ({ name: `w${n}`, turn: `t${n}`, n }));
const numbers = WELL.events.map(({ seq }) => seq);

describe('the checks of a storm are able to fail', () => {
  test('none of them finds a fault in facts without one', () => {
    const checks = [oneEnd, inOrder, gapless, ranOnce, knewAll, failedHarmlessly].flatMap((check) => check(WELL));
    expect([...checks, ...nothingLost(WELL, accepted), ...sawAll(WELL, 'reader', numbers)]).toEqual([]);
  });

  const cases: readonly [string, () => string[]][] = [
    ['a turn that was acknowledged and is gone', () => nothingLost({ ...WELL, turns: [turn(1)] }, accepted)],
    [
      'a request that became two turns',
      () => nothingLost({ ...WELL, turns: [turn(1), turn(2), turn(3, { requestId: 'w2' })] }, accepted),
    ],
    ['a turn acknowledged under another number', () => nothingLost(WELL, [{ name: 'w1', turn: 't1', n: 2 }])],
    ['a turn that nobody submitted', () => nothingLost(WELL, accepted.slice(1))],
    ['a turn without an end', () => oneEnd({ ...WELL, turns: [turn(1), turn(2, { state: 'running' })] })],
    ['a turn with two ends', () => oneEnd({ ...WELL, events: event(7, { kind: 'turn.ended' }) })],
    ['a turn that is counted as pending', () => oneEnd({ ...WELL, pending: 1 })],
    ['a turn that overtook another', () => inOrder({ ...WELL, events: WELL.events.slice(4) })],
    ['a turn that began inside another', () => inOrder({ ...WELL, events: event(4, { kind: 'turn.update' }) })],
    ['a turn that was sent twice', () => inOrder({ ...WELL, events: event(5, { kind: 'turn.sent', n: 1 }) })],
    ['a sent turn that was queued again', () => inOrder({ ...WELL, events: event(8, { kind: 'turn.requeued' }) })],
    ['a number that is missing', () => gapless({ ...WELL, events: WELL.events.filter(({ seq }) => seq !== 3) })],
    ['a number that is there twice', () => gapless({ ...WELL, events: event(4, { seq: 3 }) })],
    ['an event of an older epoch', () => gapless({ ...WELL, events: event(8, { epoch: 1 }) })],
    ['a reader that missed an event', () => sawAll(WELL, 'reader', numbers.slice(1))],
    ['a reader that missed the last event', () => sawAll(WELL, 'reader', numbers.slice(0, -1))],
    ['a reader that saw an event twice', () => sawAll(WELL, 'reader', [1, ...numbers])],
    ['a tool that ran twice', () => ranOnce({ ...WELL, ran: ['w1', 'w1', 'w2'] })],
    ['a completed turn whose tool did not run', () => ranOnce({ ...WELL, ran: ['w1'] })],
    ['a tool of an earlier turn that ran later', () => ranOnce({ ...WELL, ran: ['w2', 'w1'] })],
    ['a tool that was denied and ran', () => ranOnce({ ...WELL, ran: ['w1', 'denied-w2', 'w2'] })],
    [
      'a tool of a turn that was never sent',
      () => ranOnce({ ...WELL, turns: [turn(1), turn(2, { state: 'failed', record: null })] }),
    ],
    [
      'a session that forgot',
      () => knewAll({ ...WELL, turns: [turn(1), turn(2, { record: { reply: 'I have seen these codewords: w2.' } })] }),
    ],
    ['a session that knows of another conversation', () => knewAll({ ...WELL, turns: [turn(2), turn(3)] })],
    ['a watermark beyond the head', () => knewAll({ ...WELL, watermarks: [3] })],
    [
      'a failure that no kill explains',
      () => failedHarmlessly({ ...WELL, turns: [turn(1, { state: 'failed', failure: '{"code":"internal"}' })] }),
    ],
  ];
  test.each(cases)('%s is found', (_, check) => {
    expect(check()).not.toEqual([]);
  });

  test('an answer may lack what its receipt says was dropped', () => {
    const reply = { reply: 'I have seen these codewords: w2.' };
    expect(knewAll({ ...WELL, turns: [turn(1), turn(2, { record: reply, dropped: 1 })] })).toEqual([]);
  });

  test('a turn that was queued again before it was sent, and an attempt that was retried, are not faults', () => {
    const [queued, started, sent, ended] = WELL.events as [EventFact, EventFact, EventFact, EventFact];
    const requeued = { ...started, kind: 'turn.requeued' };
    const retrying = { ...sent, kind: 'turn.retrying' };
    const events = renumbered([queued, started, requeued, started, sent, retrying, sent, ended]);
    expect(inOrder({ ...WELL, events })).toEqual([]);
  });
});
