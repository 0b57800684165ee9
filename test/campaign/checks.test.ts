import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { bugReport } from '../../src/host/report.ts';
import { bugsIn, type Facts, ownersApart, type Receipted, violationsOf } from './harness/checks.ts';
import { figuresIn, inWords, lineOf, withFigures, withRows } from './harness/figures.ts';
import { OPERATIONS } from './scenarios/access.ts';
import { SCHEMAS } from './scenarios/upgrades.ts';

const KINDS = ['turn.queued', 'turn.started', 'restore.receipt', 'turn.sent', 'turn.update', 'turn.ended'];
const TURNS = [1, 2, 3];

const receipt = (n: number): Receipted => ({
  ...{ turn: n, attempt: 1, rung: 'live', carried: n - 1, condensed: 0, dropped: 0 },
});
const turn = (n: number): Facts['turns'][number] => ({
  ...{ id: `t${n}`, n, requestId: `w${n}`, state: 'completed', failure: null, dropped: 0 },
  record: {
    reply: `I have seen these codewords: ${TURNS.slice(0, n)
      .map((i) => `w${i}`)
      .join(', ')}.`,
  },
});
const events = TURNS.flatMap((n) => KINDS.map((kind) => ({ kind, n }))).map(({ kind, n }, i) => ({
  ...{ seq: i + 1, kind, n, epoch: null },
}));
const told = (changed: (all: Facts['told'][number]['events']) => Facts['told'][number]['events']) => [
  { reader: 'a reader', events: changed(events.map(({ seq }) => ({ seq, text: `event ${seq}` }))) },
];

/** Three turns without a violation. */
const WELL: Facts = {
  ...{ owner: 'ann', key: 'c', pending: 0, head: 3, watermarks: [3], ran: ['w1', 'w2', 'w3'], events },
  turns: TURNS.map(turn),
  texts: events.map(({ seq }) => `event ${seq}`),
  acknowledged: TURNS.map((n) => ({ name: `w${n}`, turn: `t${n}`, n })),
  told: told((all) => all),
  sent: TURNS.map((n) => ({ n, attempt: 1 })),
  receipts: TURNS.map(receipt),
};

const changedTurn = (n: number, changes: Partial<Facts['turns'][number]>) =>
  WELL.turns.map((one) => (one.n === n ? { ...one, ...changes } : one));
const changedEvent = (seq: number, changes: Partial<Facts['events'][number]>) =>
  WELL.events.map((one) => (one.seq === seq ? { ...one, ...changes } : one));

describe('the checker of the campaign is able to fail', () => {
  test('it finds nothing in facts without a violation', () => {
    expect(violationsOf(WELL)).toEqual([]);
  });

  const cases: Readonly<Record<string, Partial<Facts>>> = {
    'an acknowledged turn is lost': { turns: WELL.turns.slice(0, 2) },
    'a request is two turns': { turns: [...WELL.turns, { ...turn(3), id: 't4', n: 4 }] },
    'a request became another turn than was acknowledged': { turns: changedTurn(2, { id: 'other' }) },
    'a turn that nobody submitted': { acknowledged: WELL.acknowledged.slice(1) },
    'a turn is still open': { turns: changedTurn(3, { state: 'running' }) },
    'a turn is counted as pending': { pending: 1 },
    'a turn has two ends': { events: changedEvent(11, { kind: 'turn.ended' }) },
    'a turn has no end': { events: changedEvent(12, { kind: 'turn.update' }) },
    'a turn was sent twice': { events: changedEvent(11, { kind: 'turn.sent' }) },
    'two turns ran at once': { events: changedEvent(6, { kind: 'turn.update' }) },
    'an event is missing': { events: WELL.events.filter(({ seq }) => seq !== 5) },
    'an event is there twice': { events: [...WELL.events.slice(0, 5), ...WELL.events.slice(4)] },
    'a tool ran twice': { ran: ['w1', 'w2', 'w2', 'w3'] },
    'a tool of a turn that was never sent ran': {
      turns: changedTurn(3, { state: 'cancelled', record: null }),
      sent: WELL.sent.slice(0, 2),
    },
    'a tool of no turn ran': { ran: ['w1', 'w2', 'w3', 'other'] },
    'tools ran in another order than their turns': { ran: ['w2', 'w1', 'w3'] },
    'a turn has another number than was acknowledged': {
      acknowledged: WELL.acknowledged.map((one) => (one.n === 2 ? { ...one, n: 3 } : one)),
    },
    'a turn ran before an earlier one': {
      events: WELL.events.map((one) => ({ ...one, n: [2, 1, 3][(one.n ?? 1) - 1] ?? null })),
    },
    'a turn was queued again after it was sent': { events: changedEvent(11, { kind: 'turn.requeued' }) },
    'a receipt is of another attempt': {
      receipts: WELL.receipts.map((one) => (one.turn === 3 ? { ...one, attempt: 2 } : one)),
    },
    'a completed turn whose tool did not run': { ran: ['w1', 'w3'] },
    'a tool that was denied ran': { ran: ['w1', 'denied-w2', 'w2', 'w3'] },
    'an answer lacks a part of the history': {
      turns: changedTurn(3, { record: { reply: 'I have seen these codewords: w1, w3.' } }),
    },
    'an answer knows what belongs to another conversation': {
      turns: changedTurn(3, { record: { reply: 'I have seen these codewords: w1, w2, x9, w3.' } }),
    },
    'a watermark is beyond the head': { watermarks: [4] },
    'a turn failed although its agent did not': {
      turns: changedTurn(3, { state: 'failed', failure: '{"code":"internal"}' }),
    },
    'a session was restored without a receipt': { receipts: WELL.receipts.slice(0, 2) },
    'a receipt does not account for the whole history': {
      receipts: [receipt(1), receipt(2), { ...receipt(3), carried: 1 }],
    },
    'a reader missed an event': { told: told((all) => all.filter(({ seq }) => seq !== 7)) },
    'a reader missed the last event': { told: told((all) => all.slice(0, -1)) },
    'a reader was told an event twice': { told: told((all) => [...all.slice(0, 4), ...all.slice(3)]) },
    'a reader was told an event of the past': { told: told((all) => [...all, ...all.slice(0, 1)]) },
    'a reader was told another event than the log has': {
      told: told((all) => all.map((one) => (one.seq === 5 ? { ...one, text: 'other' } : one))),
    },
  };
  test.each(Object.entries(cases))('%s', (_, change) => {
    expect(violationsOf({ ...WELL, ...change })).not.toEqual([]);
  });

  test.each([
    [
      'a conversation of another owner is listed',
      [
        { id: '1', key: 'c' },
        { id: '2', key: 'x' },
      ],
      'w1',
    ],
    [
      'a conversation without a key is listed',
      [
        { id: '1', key: 'c' },
        { id: '2', key: null },
      ],
      'w1',
    ],
    ['an own conversation is not listed', [], 'w1'],
    ['a word of another owner is shown', [{ id: '1', key: 'c' }], 'w1 and secret-of-bob'],
  ])('%s', (_, listed, shown) => {
    expect(ownersApart('ann', [{ id: '1', key: 'c' }], ['c'], 'w1', ['secret-of-bob'])).toEqual([]);
    expect(ownersApart('ann', listed, ['c'], shown, ['secret-of-bob'])).toHaveLength(1);
  });
});

test('an internal error that the program reported is found, in the log and on stderr', () => {
  expect(bugsIn('{"level":40,"msg":"failed authentication"}\n')).toEqual([]);
  expect(bugsIn(`{"level":50,"err":{},"msg":"internal error"}\n`)).toHaveLength(1);
  expect(bugsIn(`said\n${bugReport(new Error('no such column'), 'claiming', false)}`)).toHaveLength(1);
});

test('figures are written between the marks of the page, and nothing else of it changes', () => {
  const page = 'before\n<!-- figures -->\nold $1\n<!-- end of figures -->\nafter';
  const text = inWords({ 'server kills': 1_064, requests: 2 });
  expect(text).toBe('1,064 server kills, 2 requests');
  expect(withFigures(page, `${text} $&`)).toBe(
    'before\n<!-- figures -->\n1,064 server kills, 2 requests $&\n<!-- end of figures -->\nafter',
  );
  expect(() => withFigures('no marks', text)).toThrow('no place for the figures');
});

test('the page has figures of every operation and of every earlier schema', () => {
  const figures = figuresIn(readFileSync(new URL('../../docs/reliability.md', import.meta.url), 'utf8'));
  const again = (name: string) => `run \`npm run test:long -- campaign --record -t ${name}\``;
  expect(figures, again('access')).toContain(`| ${OPERATIONS} operations,`);
  expect(figures, again('upgrades')).toContain(`| ${SCHEMAS.length} schemas,`);
});

test('a scenario that ran alone replaces its row, and the other rows stay', () => {
  const scenario = { name: 'kills', does: 'kills', run: async () => ({ figures: {}, violations: [] }) };
  const ran = { scenario, seed: 7, seconds: 1, long: true, figures: { kills: 3 }, violations: ['one'] };
  const page = (kills: string) =>
    `<!-- figures -->\nOn a machine:\n\n${kills}\n| **access**: old | 1 | 0 |\n<!-- end of figures -->`;
  expect(withRows(page('| **kills**: old | 1 | 0 |'), [ran])).toBe(page('| **kills**: kills | 3 kills | 1 |'));
  expect(() => withRows(page(''), [ran])).toThrow('no row of kills');
});

test('the line about a scenario has the command that repeats it, short or long', () => {
  const scenario = { name: 'kills', does: '', run: async () => ({ figures: {}, violations: [] }) };
  const ran = { scenario, seed: 7, seconds: 1, figures: { kills: 3 }, violations: [] };
  expect(lineOf({ ...ran, long: false })).toContain('(THROUGHLINE_SEED=7 npm test -- campaign -t kills)');
  expect(lineOf({ ...ran, long: true })).toContain('(THROUGHLINE_SEED=7 npm run test:long -- campaign -t kills)');
});
