import { describe, expect, test } from 'vitest';
import { NO_USAGE } from '../../core/turn/usage.ts';
import { NO_CHAIN } from './chain.ts';
import { canonicalHash, readValue, separate } from './content.ts';
import { type LeaseRow, underFence } from './ledger.ts';
import { fairestTask } from './tasks.ts';
import { addEndedTurns, type TotalsRow, usageSince } from './totals.ts';
import { begunTurn, checkRepeated, chosenAgent } from './turns.ts';

const LEASE: LeaseRow = {
  ...{ conv: 1, owner: 'ann', id: 'c', driver: 'worker', place: 'here', next_n: 1, next_seq: 1, chain: NO_CHAIN },
  ...{ head: 0, history: 0, epoch: 3, pending: 0, worker: 7, ready_at: null, state: 'idle', last_agent: null },
  ...{ title: '', title_source: 'none', put_away: 0, pinned: 0, choices: '{}', limits: '{}', sandbox: 's' },
};

describe('the fence', () => {
  test.each([
    ['the epoch of the lease', {}, {}, null],
    ['an older epoch', {}, { epoch: 2 }, 'lease_lost'],
    ['a lease that was released', { worker: null }, {}, 'lease_lost'],
    ['a conversation that was erased', { owner: '', epoch: 4, worker: null }, {}, 'lease_lost'],
    ['another owner', {}, { owner: 'bob' }, 'not_found'],
  ] as const)('%s', (_what, row, fence, code) => {
    const under = () => underFence({ ...LEASE, ...row }, { conversation: 'c', owner: 'ann', epoch: 3, ...fence });
    if (code === null) expect(under()).toMatchObject(row);
    else expect(under).toThrow(expect.objectContaining({ code }));
  });
});

test('a request id can be repeated only with the same body', () => {
  const hash = canonicalHash({ a: 1, b: 2 });
  expect(() => checkRepeated('r', hash, canonicalHash({ b: 2, a: 1 }))).not.toThrow();
  expect(() => checkRepeated('r', hash, canonicalHash({ a: 1 }))).toThrow(
    expect.objectContaining({ code: 'conflict' }),
  );
  expect(() => checkRepeated('r', null, hash)).toThrow(expect.objectContaining({ code: 'conflict' }));
});

test.each([
  ['named', 'last', 'default', 'named'],
  [null, 'last', 'default', 'last'],
  [null, null, 'default', 'default'],
])('the agent of a turn: %s, %s, %s', (agent, last, defaultAgent, chosen) => {
  expect(chosenAgent({ conversation: 'c', agent, defaultAgent }, last)).toBe(chosen);
});

test.each(['queued', 'completed', 'interrupted'] as const)('nothing can be written to a turn that is %s', (state) => {
  expect(() => begunTurn({ n: 1, state })).toThrow(expect.objectContaining({ code: 'conflict' }));
});

test('the next task is of the owner with the fewest running, then of the one served longest ago, then the oldest', () => {
  const a = { row: { no: 1 }, running: 1, served: 0 };
  const b = { row: { no: 2 }, running: 0, served: 9 };
  const c = { row: { no: 3 }, running: 0, served: 8 };
  const d = { row: { no: 4 }, running: 0, served: 8 };
  expect(fairestTask([a])).toEqual({ no: 1 });
  expect(fairestTask([a, b])).toEqual({ no: 2 });
  expect(fairestTask([a, b, d, c])).toEqual({ no: 3 });
  expect(fairestTask([])).toBeNull();
});

test('totals count completed turns, changes of session and usage', () => {
  const totals: TotalsRow = {
    ...{ completed: 0, first_n: null, first_at: null, last_n: null, last_at: null },
    ...{ sessions: 0, changes: 0, last_session: null, usage: JSON.stringify(NO_USAGE) },
  };
  const usage = { ...NO_USAGE, inputTokens: 2 };
  addEndedTurns(totals, [
    { n: 1, at: 10, outcome: 'completed', session: 'a', usage },
    { n: 2, at: 20, outcome: 'failed', session: 'b', usage },
    { n: 3, at: 30, outcome: 'completed', session: 'b', usage },
  ]);
  expect(totals).toMatchObject({ completed: 2, first_n: 1, last_n: 3, last_at: 30, changes: 1, last_session: 'b' });
  expect(JSON.parse(totals.usage)).toMatchObject({ inputTokens: 6 });
  expect(usageSince(usage, usage)).toBeNull();
  expect(usageSince(usage, NO_USAGE)).toEqual(usage);
});

test('long strings are stored separately, and a string that looks like a reference comes back unchanged', () => {
  const value = { text: 'long '.repeat(4_000), odd: '\u0000 x', plain: 1 };
  const { json, refs, bodies } = separate(value);
  expect([refs, bodies.size]).toEqual([1, 1]);
  expect(readValue({ content: (_, hash) => bodies.get(hash) }, 'ann', json, refs)).toEqual(value);
});
