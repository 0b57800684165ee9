import { expect, test } from 'vitest';
import { vendorSettings } from './vendor-settings.ts';

test('without an account, the package of the vendor looks for it', () => {
  const defaults = { image: null, awakeMs: 600_000, port: 43_117, account: null };
  expect(vendorSettings('e2b', {}, { VERCEL_TOKEN: 't' })).toEqual({ kind: 'e2b', ...defaults });
  expect(vendorSettings('vercel', {}, { VERCEL_OIDC_TOKEN: 't' })).toEqual({ kind: 'vercel', ...defaults });
});

test('the account is that of the settings, else that of the environment', () => {
  const env = { VERCEL_TOKEN: 'a', VERCEL_TEAM_ID: 'b', VERCEL_PROJECT_ID: 'c' };
  expect(vendorSettings('vercel', {}, env).account).toEqual({ key: 'a', team: 'b', project: 'c' });
  const given = { key: 'x', team: 'y', project: 'z' };
  expect(vendorSettings('vercel', given, env).account).toEqual(given);
  expect(vendorSettings('e2b', { key: 'x' }, env).account).toEqual({ key: 'x', team: '', project: '' });
});

test('a Vercel token without a team or a project is invalid', () => {
  expect(() => vendorSettings('vercel', { key: 'x', team: 'y' }, {})).toThrow(/team and of a project/);
});
