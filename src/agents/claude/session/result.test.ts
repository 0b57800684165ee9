import { describe, expect, test } from 'vitest';
import { costOf, outcomeOf, tokensAdded, windowIn } from './result.ts';

describe('the outcome', () => {
  test.each([
    [{ subtype: 'success', is_error: false, terminal_reason: 'completed' }, { kind: 'completed' }],
    [{ subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_tools' }, { kind: 'cancelled' }],
    [
      { subtype: 'success', is_error: true, result: 'API Error: 529' },
      { kind: 'failed', code: 'agent_failed', message: 'API Error: 529', again: false },
    ],
    [
      { is_error: true, result: 'Not logged in · Please run /login', terminal_reason: 'api_error' },
      expect.objectContaining({
        kind: 'failed',
        code: 'signed_out',
        again: false,
        hint: expect.stringContaining('throughline agents'),
      }),
    ],
    [
      { subtype: 'success', is_error: true, result: 'Prompt is too long' },
      { kind: 'failed', code: 'too_long', again: false },
    ],
    [
      { subtype: 'error_max_turns', is_error: true, errors: ['one', 2, 'three'] },
      { kind: 'failed', code: 'agent_failed', message: 'one\nthree', again: false },
    ],
    [
      { is_error: true, terminal_reason: 'prompt_too_long' },
      { kind: 'failed', code: 'too_long' },
    ],
  ])('is judged by is_error and the reason, never by the subtype: %#', (result, outcome) => {
    expect(outcomeOf({ type: 'result', ...result }, true)).toMatchObject(outcome);
  });

  test.each([
    [529, true],
    [500, true],
    [429, true],
    [null, true],
    [400, false],
    [401, false],
    [404, false],
  ])(
    'after an API error with the status %s, the turn may be tried again: %s; never if the prompt stays in the session',
    (status, again) => {
      const result = {
        type: 'result',
        is_error: true,
        terminal_reason: 'api_error',
        api_error_status: status,
      } as const;
      expect(outcomeOf(result, true)).toMatchObject({ kind: 'failed', again });
      expect(outcomeOf(result, false)).toMatchObject({ kind: 'failed', again: false });
    },
  );
});

describe('the tokens', () => {
  const added = (since?: unknown) =>
    tokensAdded({ type: 'result', usage: { input_tokens: 5 }, model_usage_since_last_result: since }).inputTokens;

  test('are those of all models since the last result, where Claude reports them', () => {
    expect(added({ a: { inputTokens: 10 }, b: { inputTokens: 2 } })).toBe(12);
    for (const since of [undefined, {}, { a: 'no' }, { a: { costUSD: 1 } }]) expect(added(since)).toBe(5);
  });
});

describe('the cost', () => {
  const cost = (total: unknown, before: number | null, since?: unknown) =>
    costOf({ type: 'result', total_cost_usd: total, model_usage_since_last_result: since }, before);

  test('is the growth of the total', () => {
    expect(cost(0.75, 0.5)).toEqual({ costMicros: 250_000, soFar: 0.75 });
    expect(cost(0.75, null).costMicros).toBe(750_000);
  });

  test('is the whole total when that has restarted', () => {
    expect(cost(0.1, 0.5).costMicros).toBe(100_000);
  });

  test('is the cost since the last result where Claude reports it: the total of an adopted session includes other turns', () => {
    expect(cost(9, null, { a: { costUSD: 0.25 }, b: { costUSD: 0.5 } }).costMicros).toBe(750_000);
    expect(cost(9, 8, {}).costMicros).toBe(0);
    expect(cost(9, 8, { a: 'no' }).costMicros).toBe(1_000_000);
  });

  test('is zero without a total', () => {
    expect(cost(undefined, 0.5)).toEqual({ costMicros: 0, soFar: 0.5 });
  });
});

test('the window is that of the model that answers, not of the models of its subagents', () => {
  const modelUsage = {
    main: { contextWindow: 1_000_000 },
    small: { contextWindow: 200_000 },
    odd: { contextWindow: 'x' },
    guess: { contextWindow: 1_000_000, costBasis: 'unknown' },
  };
  const result = { type: 'result', modelUsage };
  expect(windowIn(result, 'main')).toBe(1_000_000);
  for (const model of ['odd', 'guess', 'gone', 'toString', null]) expect(windowIn(result, model)).toBeNull();
  expect(windowIn({ type: 'result' }, 'main')).toBeNull();
});
