import { describe, expect, test } from 'vitest';
import { NOTHING_OMITTED, type Receipt } from '../../core/restore/receipt.ts';
import { NO_USAGE, type Usage } from '../../core/turn/usage.ts';
import { receiptLine, toolLine, usageLine, usageTable } from './lines.ts';
import { cells } from './terminal-text.ts';

const RECEIPT: Receipt = {
  turn: 4,
  attempt: 1,
  agent: 'scripted',
  rung: 'transcript',
  sessionId: 's2',
  carried: 3,
  condensed: 0,
  dropped: 0,
  ...NOTHING_OMITTED,
  unknownBefore: null,
  delivered: 3,
  deliveredTokens: 120,
  window: { tokens: 200_000, from: 'assumed' },
  unsettled: false,
  modelCalls: 0,
  usage: NO_USAGE,
  toolsRan: [],
  proof: 'counted',
  before: 'counted',
  after: null,
  tried: [{ rung: 'resume', sessionId: 's1', failure: 'the agent no longer has it' }],
  lockWaits: { count: 0, ms: 0 },
  ms: 12,
};

test('a receipt shows the way, what was carried and dropped, how far it is proved, and why better ways failed', () => {
  expect(receiptLine(RECEIPT)).toBe(
    'restored by transcript: 3 turns carried, 0 dropped, proof counted (resume: the agent no longer has it)',
  );
});

test('a fresh session is never shown as a restored one', () => {
  const line = receiptLine({ ...RECEIPT, rung: 'fresh', carried: 0, dropped: 3, proof: 'none', tried: [] });
  expect(line).toBe('fresh session without the history: 0 turns carried, 3 dropped, proof none');
});

test('what a restore cost is shown when it cost something', () => {
  const line = receiptLine({
    ...RECEIPT,
    rung: 'replay',
    carried: 1,
    modelCalls: 3,
    toolsRan: ['write'],
    unsettled: true,
    lockWaits: { count: 2, ms: 300 },
    tried: [],
  });
  expect(line).toBe(
    'restored by replay: 1 turn carried, 0 dropped, proof counted, told that its last turn did not complete, ' +
      '3 model calls for restoring, tools ran: write, waited 300 ms for its lock',
  );
});

test('turns that were told only in part are shown', () => {
  const leftOut = { outputs: 2, images: 1, files: 0 };
  expect(receiptLine({ ...RECEIPT, shortened: 1, leftOut, tried: [] })).toBe(
    'restored by transcript: 3 turns carried, 0 dropped, proof counted, 1 of them shortened, ' +
      'fitted to a window of 200,000 tokens (assumed: the agent has not reported it yet), ' +
      'left out or cut: 2 tool outputs and 1 image',
  );
});

test.each([
  ['new', 'new session: nothing to carry'],
  ['live', 'continued in the live session: 3 turns carried, 0 dropped, proof counted'],
  ['none', 'no session was opened'],
] as const)('the rung %s has words of its own', (rung, line) => {
  expect(receiptLine({ ...RECEIPT, rung, tried: [] })).toBe(line);
});

test('a context that could not be restored is shown with what would have been lost', () => {
  const line = receiptLine({ ...RECEIPT, rung: 'none', carried: 0, dropped: 3, tried: [] });
  expect(line).toBe('context not restored: 3 turns would have been lost');
});

test('condensed turns are not called proved', () => {
  const line = receiptLine({ ...RECEIPT, rung: 'resume', carried: 2, condensed: 4, proof: 'proved', tried: [] });
  expect(line).toBe('restored by resume: 2 turns carried (proof proved), 4 condensed by the agent, 0 dropped');
});

test('a receipt shows before which turn unreadable history is missing', () => {
  expect(receiptLine({ ...RECEIPT, tried: [], unknownBefore: 2 })).toBe(
    'restored by transcript: 3 turns carried, 0 dropped, proof counted, what was said before turn 2 is unknown',
  );
});

test.each([
  [
    { kind: 'execute', name: 'Run', target: 'npm test', status: 'failed', ms: 61_500 },
    'execute: Run npm test, 61.5 s, failed',
  ],
  [{ kind: 'edit', name: 'Edit a.ts', target: 'a.ts', status: 'completed', ms: 12 }, 'tool: Edit a.ts, 12 ms'],
  [{ kind: 'other', name: 'lookup', target: null, status: 'completed' }, 'tool: lookup'],
  [{ kind: 'read', name: 'a\nturn 9', target: null, status: 'unknown' }, 'read: a turn 9, end unknown'],
] as const)('a tool is one line: %j', (tool, line) => {
  expect(toolLine({ type: 'tool', id: '1', input: null, output: null, ...tool })).toBe(line);
});

describe('usage', () => {
  const used = (inputTokens: number, more: Partial<Usage> = {}) => ({
    ...NO_USAGE,
    inputTokens,
    modelCalls: 1,
    ...more,
  });
  const rows = [
    { names: ['2026-01-31', 'claude'], turns: 12, usage: used(16_000, { outputTokens: 4_000, costMicros: 1_230_000 }) },
    { names: ['2026-01-30', 'codex'], turns: 1, usage: used(5_000) },
    { names: ['2026-01-30', 'mute'], turns: 3, usage: NO_USAGE },
  ];

  test('is a table with bars, as wide as the terminal', () => {
    expect(usageTable(rows, 72)).toEqual([
      '                                 in   out  cached      cost',
      '2026-01-31  claude  12 turns  16.0k  4000       0  1.23 USD  ███████████',
      '2026-01-30  codex     1 turn   5000     0       0         –  ██▊',
      '2026-01-30  mute     3 turns      –     –       –         –',
    ]);
    for (const width of [20, 40, 57, 58, 66, 100, 200])
      for (const line of usageTable(rows, width)) expect(cells(line)).toBeLessThanOrEqual(width);
    expect(usageTable(rows, 60).join('')).not.toContain('█');
  });

  test('is shown in lines below the names if the terminal is narrower than the table, and nothing is cut off', () => {
    expect(usageTable(rows, 40)).toEqual([
      '2026-01-31  claude',
      '  12 turns, in 16.0k, out 4000, cached 0',
      '  cost 1.23 USD',
      '2026-01-30  codex',
      '  1 turn, in 5000, out 0, cached 0',
      '  cost –',
      '2026-01-30  mute',
      '  3 turns, in –, out –, cached –, cost –',
    ]);
  });

  test('is one sentence per row in a pipe, with – for unknown values', () => {
    expect(usageTable(rows, null)).toEqual([
      '2026-01-31  claude  12 turns: 16000 tokens in, 4000 out, 1 model call, 1.23 USD',
      '2026-01-30  codex  1 turn: 5000 tokens in, 0 out, 1 model call',
      '2026-01-30  mute  3 turns: –',
    ]);
  });

  test('names the turns whose cost is not known', () => {
    const costs = (usage: Partial<Usage>) => usageLine(used(1, usage)).split(', ').slice(3).join(', ');
    expect(costs({ costMicros: 700_000, unknownCosts: 1 })).toBe('0.70 USD + 1 turn unknown');
    expect(costs({ costMicros: 1_200, unknownCosts: 1, unreportedCosts: 2 })).toBe('0.0012 USD + 3 turns unknown');
    expect(costs({ unknownCosts: 2 })).toBe('cost of 2 turns unknown');
    // There is no sum that could be too low.
    expect(costs({ unreportedCosts: 2 })).toBe('');
    const rows = [{ names: ['claude'], turns: 1, usage: { ...NO_USAGE, unknownCosts: 1 } }];
    expect(usageTable(rows, null)).toEqual([
      'claude  1 turn: 0 tokens in, 0 out, 0 model calls, cost of 1 turn unknown',
    ]);
    expect(usageTable(rows, 90)[1]).toMatch(/ 1 turn unknown$/);
  });
});
