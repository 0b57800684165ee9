import { expect, test } from 'vitest';
import { faultOf } from '../../../test/values/thrown.ts';
import { NO_USAGE, type Usage } from '../turn/usage.ts';
import { checkDecision, decideAfter, decideBefore, type Standing } from './task-decision.ts';
import { type GateResult, parseVerdict } from './task-gate.ts';

const standing = (set: Partial<Standing> = {}): Standing => ({
  iteration: 1,
  maxIterations: 3,
  tries: 0,
  retryInterrupted: 0,
  budget: { costMicros: null, tokens: null },
  spent: NO_USAGE,
  unpriced: null,
  ...set,
});
const gate = (verdict: GateResult['verdict']): GateResult => ({
  verdict,
  summary: 'exit code 1',
  output: '',
  cut: 0,
  ms: 1,
});
const asked = { denied: [], howToAllow: null } as const;
const completed = { outcome: 'completed', failure: null, ...asked } as const;
const denied = {
  ...completed,
  denied: [{ permissionId: 'p', title: 'Write a.txt', reason: 'nobody can answer here' }],
  howToAllow: '"mode"',
};
const interrupted = {
  outcome: 'interrupted',
  failure: { code: 'interrupted', message: 'It was killed' },
  ...asked,
} as const;
const short = ({ decision, code }: { decision: string; code: string }) => `${decision} ${code}`;

test.each<[string, Partial<Standing>, Parameters<typeof decideAfter>[1], GateResult | null, string]>([
  ['no gate', {}, completed, null, 'done no_gate'],
  ['a gate that passes', {}, completed, gate('pass'), 'done gate_passed'],
  ['a gate that fails', {}, completed, gate('fail'), 'retry gate_failed'],
  ['the last turn', { iteration: 3 }, completed, gate('fail'), 'give-up iterations_spent'],
  ['a gate that fails after a denial', {}, denied, gate('fail'), 'ask permission_denied'],
  ['a gate that passes after a denial', {}, denied, gate('pass'), 'done gate_passed'],
  ['the last turn after a denial', { iteration: 3 }, denied, gate('fail'), 'ask permission_denied'],
  ['a gate that cannot tell', {}, completed, gate('ask'), 'ask gate_asks'],
  ['a broken gate', {}, completed, gate('broken'), 'ask gate_broken'],
  ['an interruption', {}, interrupted, null, 'ask turn_interrupted'],
  ['one that may be tried again', { retryInterrupted: 2, tries: 1 }, interrupted, null, 'retry turn_interrupted'],
  ['one too many', { retryInterrupted: 2, tries: 2 }, interrupted, null, 'ask turn_interrupted'],
  [
    'a failure',
    {},
    { outcome: 'failed', failure: { code: 'agent_failed', message: 'x' }, ...asked },
    null,
    'ask turn_failed',
  ],
  [
    'a failure because of a denial',
    {},
    { ...denied, outcome: 'failed', failure: { code: 'permission_denied', message: 'x' } },
    null,
    'ask permission_denied',
  ],
  ['a cancelled turn', {}, { outcome: 'cancelled', failure: null, ...asked }, null, 'ask turn_cancelled'],
  [
    'a pass on the last token',
    spent(10, 0, { tokens: 5, costMicros: null }),
    completed,
    gate('pass'),
    'done gate_passed',
  ],
  ['spent tokens', spent(10, 0, { tokens: 10, costMicros: null }), completed, gate('fail'), 'give-up budget_spent'],
  ['spent money', spent(1, 9, { tokens: null, costMicros: 9 }), completed, gate('fail'), 'give-up budget_spent'],
  [
    'an agent that reports no cost',
    spent(1, 0, { tokens: null, costMicros: 9 }, { unreportedCosts: 1 }),
    completed,
    gate('fail'),
    'ask cost_unknown',
  ],
  [
    'a cost that is unknown because a turn was cut off',
    spent(1, 0, { tokens: null, costMicros: 9 }, { unknownCosts: 1 }),
    completed,
    gate('fail'),
    'retry gate_failed',
  ],
  [
    'a turn without a price',
    { ...spent(5, 3, { tokens: null, costMicros: 9 }), unpriced: 'codex' },
    completed,
    gate('fail'),
    'ask cost_unknown',
  ],
  [
    'a turn that was cancelled for the budget',
    spent(10, 0, { tokens: 9, costMicros: null }),
    { outcome: 'cancelled', failure: null, ...asked },
    null,
    'give-up budget_spent',
  ],
  [
    'no budget to try again',
    { ...spent(10, 0, { tokens: 9, costMicros: null }), retryInterrupted: 1 },
    interrupted,
    null,
    'give-up budget_spent',
  ],
])('after %s', (_, set, turn, result, decision) => {
  expect(short(decideAfter(standing(set), turn, result))).toBe(decision);
});

function spent(
  tokens: number,
  costMicros: number,
  budget: Standing['budget'],
  more: Partial<Usage> = {},
): Partial<Standing> {
  return { spent: { ...NO_USAGE, inputTokens: tokens - 1, cacheReadTokens: 1, costMicros, ...more }, budget };
}

test('a first turn may begin, whatever the budget', () => {
  expect(decideBefore(standing({ budget: { costMicros: 1, tokens: 1 } }))).toBeNull();
});

test('only known decisions with a reason are stored', () => {
  const good = { decision: 'done', code: 'no_gate', reason: 'It completed.' };
  expect(checkDecision(good)).toBe(good);
  for (const bad of [null, 'done', { ...good, decision: 'fine' }, { ...good, code: 'x' }, { ...good, reason: ' ' }]) {
    expect(faultOf(() => checkDecision(bad))).toMatchObject({ code: 'invalid' });
  }
});

test.each<[string, object]>([
  ['{"verdict":"pass","reason":"It works."}', { verdict: 'pass', reason: 'It works.' }],
  ['```json\n{"verdict":"fail","reason":"No."}\n```', { verdict: 'fail', reason: 'No.' }],
  ['It passes.', { malformed: 'it is not a JSON object' }],
  ['Sure: {"verdict":"pass","reason":"x"}', { malformed: 'it is not a JSON object' }],
  ['{"verdict":"yes","reason":"x"}', { malformed: '"verdict" must be "pass", "fail" or "ask"' }],
  ['{"verdict":"broken","reason":"x"}', { malformed: '"verdict" must be "pass", "fail" or "ask"' }],
  ['{"verdict":"pass"}', { malformed: '"reason" is not a text' }],
  ['{"verdict":"pass","reason":"x","score":1}', { malformed: 'it has the unknown field "score"' }],
])('the answer %s is read as a verdict, or as malformed', (answer, verdict) => {
  expect(parseVerdict(answer)).toEqual(verdict);
});

test('a denial names its question and the setting to change', () => {
  const { reason } = decideAfter(standing(), denied, gate('fail'));
  expect(reason).toMatch(
    /^The gate failed: exit code 1\. The agent asked for permission, and nobody answered: "Write a\.txt"\./,
  );
  expect(reason).toContain('with "mode" in its settings');
  expect(reason).toContain('retry it with "permissions": "ask"');
  expect(decideAfter(standing(), denied, null).reason).toContain('nobody answered: "Write a.txt".');
});

test('a question that waited in vain is not denied because nobody could answer', () => {
  const waited = {
    ...denied,
    denied: denied.denied.map((one) => ({ ...one, reason: 'nobody answered within 600 seconds' })),
  };
  const { reason } = decideAfter(standing(), waited, gate('fail'));
  expect(reason).toContain('retry it and answer in time');
  expect(reason).not.toContain('--permissions ask');
});
