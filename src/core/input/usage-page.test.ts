import { expect, test } from 'vitest';
import { faultOf } from '../../../test/values/thrown.ts';
import { checkUsagePage } from './usage-page.ts';

test('a page of usage has a limit, given or default', () => {
  expect(checkUsagePage({})).toEqual({ limit: 100 });
  const page = { since: '2024-02-29', limit: 7, before: { day: '2026-01-31', agent: 'a' } };
  expect(checkUsagePage(page)).toEqual(page);
  expect(faultOf(() => checkUsagePage({ limit: 0 }))?.code).toBe('invalid');
});

test('a day exists in the calendar, and is written in one way', () => {
  for (const day of ['2026-02-30', '2026-1-31', '2026-01-31T00:00', 'today', '', 5, null]) {
    expect(faultOf(() => checkUsagePage({ since: day as string }))?.code, String(day)).toBe('invalid');
    expect(faultOf(() => checkUsagePage({ before: { day: day as string } }))?.code, String(day)).toBe('invalid');
  }
});
