import { expect, test } from 'vitest';
import type { Reason } from '../core/health.ts';
import { ProcessHealth } from './health.ts';

const full: Reason = { code: 'storage_full', message: 'Full.', hint: 'Free some.', unready: false };
const busy: Reason = { code: 'storage_busy', message: 'Locked.', hint: 'Wait.', unready: false };

test('a reason is reported when it appears, when it changes under the same code, and when it is gone', () => {
  const told: string[] = [];
  const health = new ProcessHealth(({ code, message }, gone) => told.push(gone ? `${code} gone` : message));
  health.report('storage', null);
  health.report('storage', full);
  health.report('storage', { ...full });
  health.report('storage', { ...full, message: 'Still full.' });
  health.report('elsewhere', busy);
  expect(health.reasons().map(({ message }) => message)).toEqual(['Still full.', 'Locked.']);
  health.report('storage', null);
  health.report('storage', null);
  health.report('elsewhere', full);
  expect(health.reasons()).toEqual([full]);
  expect(told).toEqual(['Full.', 'Still full.', 'Locked.', 'storage_full gone', 'storage_busy gone', 'Full.']);
});
