import { describe, expect, test } from 'vitest';
import { NOTHING_OMITTED, type Receipt } from '../../core/restore/receipt.ts';
import type { Turn } from '../../core/turn/turn.ts';
import { NO_USAGE } from '../../core/turn/usage.ts';
import { type EndFacts, endOf, outcomeOf, type SessionEffect } from './end-turn.ts';

const TURN = { id: 't3', n: 3, agent: 'a', prompt: [{ type: 'text', text: 'Hi.' }] } as unknown as Turn;
const PROCESS = { pid: 1, startedAt: 's', boot: 'b', namespace: 'n' } as unknown as SessionEffect['process'];
const SAID = { parts: [], sessionId: 's', startedAt: 1, endedAt: 2 };
const OMITTED = { ...NOTHING_OMITTED, shortened: 1 };
const COPY = { mirror: { from: 5, bytes: new Uint8Array([1, 2]) }, memo: 'note' };
const EFFECT: SessionEffect = {
  was: 'told',
  alive: true,
  process: PROCESS,
  reopens: true,
  position: 'p9',
  dropped: 1,
  omitted: OMITTED,
  condensed: null,
  copy: {},
  context: null,
  closeReason: null,
};
const FACTS: EndFacts = {
  turn: TURN,
  outcome: 'completed',
  failure: null,
  usage: NO_USAGE,
  receipt: null,
  said: SAID,
  untaken: false,
  session: null,
};

const changeAfter = (effect: Partial<SessionEffect>, facts: Partial<EndFacts> = {}) =>
  endOf({ ...FACTS, ...facts, session: { ref: 'r', effect: { ...EFFECT, ...effect } } })[0];

describe('the session of a turn that ends', () => {
  const reason = 'turn 3 ended as failed';
  const cutOff = { was: 'cut off' } as const;
  const notTold = { was: 'not told', position: undefined } as const;
  test.each<[string, Partial<SessionEffect>, Partial<EndFacts>, object, string | null]>([
    [
      'moves its watermark when the turn completed',
      {},
      {},
      { state: 'live', watermark: 3, dropped: 1, omitted: OMITTED, position: 'p9' },
      null,
    ],
    [
      'has all turns before as a summary when its agent condensed before it answered',
      { condensed: 'before' },
      {},
      { condensedTo: 2 },
      null,
    ],
    [
      'has this turn as a summary, too, when its agent condensed later, whatever the end',
      { ...cutOff, condensed: 'turn' },
      { outcome: 'failed' },
      { condensedTo: 3 },
      reason,
    ],
    [
      'is dormant when its process has ended',
      { alive: false },
      {},
      { state: 'dormant', watermark: 3, process: null },
      null,
    ],
    [
      'moves its watermark without a position if its process lives',
      { position: null },
      {},
      { state: 'live', watermark: 3, position: null },
      null,
    ],
    [
      'does not move its watermark without a position and a process',
      { alive: false, position: null },
      {},
      { state: 'dormant', position: null, watermark: undefined },
      null,
    ],
    ['is lost when its agent cannot reopen it', { alive: false, reopens: false }, {}, { state: 'lost' }, null],
    [
      'is unsettled after any other end',
      cutOff,
      { outcome: 'failed' },
      { state: 'unsettled', watermark: undefined },
      reason,
    ],
    [
      'is unsettled after any other end while its process lives, though its agent cannot reopen it',
      { ...cutOff, reopens: false },
      { outcome: 'failed' },
      { state: 'unsettled', process: PROCESS },
      reason,
    ],
    [
      'is lost after any other end when its agent cannot reopen it',
      { ...cutOff, alive: false, reopens: false },
      { outcome: 'failed' },
      { state: 'lost', process: null },
      reason,
    ],
    [
      'is lost when its context was refuted, at the position that was read',
      { was: 'refuted' },
      { outcome: 'failed' },
      { state: 'lost', position: 'p9', watermark: undefined, process: null },
      reason,
    ],
    ['has the copy of its transcript and the note of its adapter', { copy: COPY }, {}, COPY, null],
    [
      'has its context as the turn has shown it',
      { context: { used: 5, size: 9 } },
      {},
      { context: { used: 5, size: 9 } },
      null,
    ],
    [
      'keeps its position when it accepted no prompt',
      notTold,
      { said: null, untaken: true },
      { state: 'live', position: undefined, watermark: undefined },
      'it did not take a prompt',
    ],
    [
      'is closed with its reason',
      { closeReason: 'because' },
      {},
      { state: 'closed', process: null, watermark: 3 },
      'because',
    ],
  ])('%s', (_, effect, facts, change, why) => {
    const write = changeAfter(effect, facts) as { change: object; reason: string | null };
    expect(write).toMatchObject({ write: 'change-session', ref: 'r', reason: why });
    // A field that is expected as undefined must not be written at all.
    for (const [name, value] of Object.entries(change)) {
      if (value === undefined) expect(write.change).not.toHaveProperty(name);
      else expect(write.change).toHaveProperty(name, value);
    }
  });
});

describe('what ends a turn', () => {
  test('writes one record, once, for a turn that was sent', () => {
    const [end] = endOf(FACTS);
    expect(end).toMatchObject({ write: 'end', turn: 't3', end: { outcome: 'completed', record: { n: 3, ...SAID } } });
    expect(end).not.toHaveProperty('end.unsent');
  });

  test('writes no record for a turn that was never sent, or that the agent did not accept', () => {
    expect(endOf({ ...FACTS, said: null, outcome: 'failed' })).toMatchObject([{ end: { record: null } }]);
    expect(endOf({ ...FACTS, said: null, untaken: true })).toMatchObject([{ end: { record: null, unsent: true } }]);
  });

  test('writes the receipt of the turn, if there is one', () => {
    const receipt = { rung: 'live' } as unknown as Receipt;
    expect(endOf({ ...FACTS, receipt })).toMatchObject([
      { write: 'receipt', receipt, turn: 't3', session: null },
      { write: 'end', turn: 't3' },
    ]);
    expect(endOf(FACTS).map(({ write }) => write)).toEqual(['end']);
  });

  test('does not change a session that is already written', () => {
    const writes = endOf({ ...FACTS, session: { ref: 'r', effect: null } });
    expect(writes).toMatchObject([{ write: 'end', end: { session: 'r' } }]);
  });

  test.each([
    [null, false, 'completed'],
    [{ code: 'cancelled', message: '' }, false, 'cancelled'],
    [{ code: 'interrupted', message: '' }, true, 'interrupted'],
    [{ code: 'agent_failed', message: '' }, true, 'failed'],
    [{ code: 'agent_died', message: '' }, false, 'interrupted'],
    [{ code: 'timed_out', message: '' }, true, 'interrupted'],
    [{ code: 'stalled', message: '' }, true, 'interrupted'],
    [{ code: 'over_budget', message: '' }, true, 'interrupted'],
  ] as const)('%j, seen to its end: %s, is called %s', (failure, seen, outcome) => {
    expect(outcomeOf(failure, seen)).toBe(outcome);
  });
});
