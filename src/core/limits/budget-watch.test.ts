import { expect, test } from 'vitest';
import { SPENT, type Update } from '../turn/update.ts';
import { BudgetWatch } from './budget-watch.ts';

const said = (amount: number, currency = 'USD') =>
  ({ sessionUpdate: 'usage_update', used: 1, size: 2, cost: { amount, currency } }) as unknown as Update;
const used = (inputTokens: number, outputTokens = 0) =>
  ({ sessionUpdate: SPENT, inputTokens, outputTokens, cacheReadTokens: 1, cacheWriteTokens: 0 }) as Update;
const usd = (costMicros: number) => ({ costMicros, tokens: null });
const tokens = (count: number) => ({ costMicros: null, tokens: count });

test('for a new session the whole cost counts; for a used one only the cost after its first report', () => {
  const fresh = new BudgetWatch(true);
  fresh.begin(usd(1_000_000));
  expect([fresh.see(said(0.4)), fresh.see(said(0.999)), fresh.see(said(1))]).toEqual([false, false, true]);
  const old = new BudgetWatch(false);
  old.begin(usd(1_000_000));
  expect([old.see(said(5)), old.see(said(5.5)), old.see(said(6))]).toEqual([false, false, true]);
});

test('the next turn counts from the last report', () => {
  const watch = new BudgetWatch(true);
  watch.begin(usd(1_000_000));
  watch.see(said(0.9));
  watch.begin(usd(100_000));
  expect([watch.see(said(0.95)), watch.see(said(1))]).toEqual([false, true]);
  watch.begin({ costMicros: null, tokens: null });
  expect([watch.see(said(50)), watch.see(used(1_000)), watch.over]).toEqual([false, false, false]);
});

test('a report without a cost in USD is ignored', () => {
  const watch = new BudgetWatch(true);
  watch.begin(usd(1));
  const others = [said(9, 'EUR'), said(Number.NaN), { sessionUpdate: 'usage_update' }, { sessionUpdate: 'plan' }];
  expect(others.map((update) => watch.see(update as Update))).toEqual([false, false, false, false]);
});

test('tokens of every kind count, as many as the turn has used so far', () => {
  const watch = new BudgetWatch(false);
  watch.begin(tokens(100));
  expect([watch.see(used(60)), watch.see(used(90)), watch.see(used(90, 9)), watch.over]).toEqual([
    false,
    false,
    true,
    true,
  ]);
  watch.begin(tokens(100));
  expect([watch.over, watch.see(used(60)), watch.see(said(50))]).toEqual([false, false, false]);
});
