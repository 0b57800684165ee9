import { expect, test } from 'vitest';
import type { Update } from '../core/update.ts';
import { CostWatch } from './cost-watch.ts';

const said = (amount: number, currency = 'USD') =>
  ({ sessionUpdate: 'usage_update', used: 1, size: 2, cost: { amount, currency } }) as unknown as Update;

test('of a new session everything counts, of a used one what is added from when it is first said', () => {
  const fresh = new CostWatch(true);
  fresh.begin(1_000_000);
  expect([fresh.see(said(0.4)), fresh.see(said(0.999)), fresh.see(said(1))]).toEqual([false, false, true]);
  const used = new CostWatch(false);
  used.begin(1_000_000);
  expect([used.see(said(5)), used.see(said(5.5)), used.see(said(6))]).toEqual([false, false, true]);
});

test('the next turn begins from what was last said', () => {
  const watch = new CostWatch(true);
  watch.begin(1_000_000);
  watch.see(said(0.9));
  watch.begin(100_000);
  expect([watch.see(said(0.95)), watch.see(said(1))]).toEqual([false, true]);
  watch.begin(null);
  expect([watch.see(said(50)), watch.over]).toEqual([false, false]);
});

test('what is no cost in USD is passed over', () => {
  const watch = new CostWatch(true);
  watch.begin(1);
  const others = [said(9, 'EUR'), said(Number.NaN), { sessionUpdate: 'usage_update' }, { sessionUpdate: 'plan' }];
  expect(others.map((update) => watch.see(update as Update))).toEqual([false, false, false, false]);
});
