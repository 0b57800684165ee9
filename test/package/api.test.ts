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

test('no public declaration has a field that only the store and the engine use', () => {
  const fields = [...readFileSync(FILE, 'utf8').matchAll(/^ +(?:readonly )?(\w+)\??: (.*)$/gm)];
  const internal = ['pid', 'boot', 'namespace', 'mark', 'ref', 'memo', 'mirrored', 'epoch', 'fence', 'process'];
  expect(fields.length).toBeGreaterThan(1_000);
  expect(fields.filter(([, name = '']) => internal.includes(name)).map(([field]) => field)).toEqual([]);
});

test('the client exports every type except those of an embedded Throughline', () => {
  const text = readFileSync(FILE, 'utf8');
  const namesOf = (entry: string) => {
    const [, names = ''] = new RegExp(`^${entry}\\n((?: {2}.*\\n)+)`, 'm').exec(text) ?? [];
    return [...names.matchAll(/^ {2}(\w+)/gm)].map(([, name = '']) => name);
  };
  const client = new Set(namesOf('throughline/client'));
  const embedded = namesOf('throughline').filter((name) => !client.has(name));
  // In the client, `ThroughlineClient` takes the place of `Throughline`.
  const expected = ['AgentSettings', 'Credentials', 'CredentialsFor', 'CredentialsRequest', 'OpenOptions', 'Settings'];
  expect(embedded).toEqual([...expected, 'Throughline', 'open']);
});
