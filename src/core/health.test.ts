import { expect, test } from 'vitest';
import type { Failure } from './errors.ts';
import { healthReport, type Reason } from './health.ts';

const full: Reason = { code: 'storage_full', message: 'Full.', hint: 'Free some.', unready: false };
const gone: Reason = { code: 'storage_damaged', message: 'Gone.', hint: 'Put it back.', unready: true };
const end: Failure = { code: 'closed', message: 'The server is stopping.' };

test.each([
  { given: [], stopping: null, status: 'ok', ready: true, codes: [] },
  { given: [full], stopping: null, status: 'degraded', ready: true, codes: ['storage_full'] },
  { given: [full, gone], stopping: null, status: 'unready', ready: false, codes: ['storage_full', 'storage_damaged'] },
  { given: [], stopping: end, status: 'stopping', ready: false, codes: ['closed'] },
  { given: [gone], stopping: end, status: 'stopping', ready: false, codes: ['closed', 'storage_damaged'] },
])('$given.length reasons, stopping: $stopping → $status', ({ given, stopping, status, ready, codes }) => {
  const report = healthReport(given, stopping);
  expect(report).toMatchObject({ status, live: true, ready });
  expect(report.reasons.map(({ code }) => code)).toEqual(codes);
  expect(report.reasons.every((reason) => !('unready' in reason))).toBe(true);
});
