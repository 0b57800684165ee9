import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FILE, surface } from '../../scripts/api.js';

test('docs/api.txt is the public surface of the package', (context) => {
  const now = surface();
  if (now === null) context.skip('needs TypeScript 5.9, which test/package installs');
  expect(
    readFileSync(FILE, 'utf8') === now,
    'The public surface has changed. Run "npm run api", and look at the diff.',
  ).toBe(true);
});

test('the surface has every entry, what they export, and what can be reached from there', () => {
  const text = readFileSync(FILE, 'utf8');
  for (const entry of ['throughline', 'throughline/client', 'throughline/testing'])
    expect(text).toMatch(new RegExp(`^${entry}$`, 'm'));
  expect(text).toMatch(/^ {2}open$/m);
  expect(text).toMatch(/^function open\(/m);
  expect(text).toMatch(/^class ThroughlineError extends Error/m);
  expect(text).not.toContain('/**');
});
