import { expect, test } from 'vitest';
import type { Reason } from '../core/health.ts';
import { ProcessHealth } from './health.ts';

const full: Reason = { code: 'storage_full', message: 'Full.', hint: 'Free some.', unready: false };
const busy: Reason = { code: 'storage_busy', message: 'Locked.', hint: 'Wait.', unready: false };

test('a reason is told when it appears and when it goes, and not in between', () => {
  const told: string[] = [];
  const health = new ProcessHealth(({ code }, gone) => told.push(gone ? `${code} gone` : code));
  health.report('storage', null);
  health.report('storage', full);
  health.report('storage', { ...full, message: 'Still full.' });
  health.report('elsewhere', busy);
  expect(health.reasons().map(({ message }) => message)).toEqual(['Still full.', 'Locked.']);
  health.report('storage', null);
  health.report('storage', null);
  health.report('elsewhere', full);
  expect(health.reasons()).toEqual([full]);
  expect(told).toEqual(['storage_full', 'storage_busy', 'storage_full gone', 'storage_busy gone', 'storage_full']);
});
