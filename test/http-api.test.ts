import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FILE, httpApi } from '../scripts/http-api.ts';
import { INTERFACE } from '../src/wire/operations/operation.ts';
import { ROUTES } from '../src/wire/routes.ts';

const CHANGED = [
  'The HTTP interface has changed. Would a client and a server still understand each other if only one of them has this change?',
  'Yes for a new operation, a new optional field of a request, and a new field of an answer.',
  'No for a field that is renamed, removed or required, and for another type or meaning:',
  'then raise INTERFACE (src/wire/operations/operation.ts), once for each release, and the number in docs/http.md.',
  'In both cases, run "npm run api", and look at the diff of docs/http-api.txt.',
].join('\n');

const stored = readFileSync(FILE, 'utf8');

test('docs/http-api.txt is the HTTP interface, with its number', () => {
  expect(stored === httpApi(), CHANGED).toBe(true);
  expect(stored.split('\n', 1)).toEqual([`interface ${INTERFACE}`]);
});

test('the listing has every operation, and the fields of values', () => {
  for (const { method, path } of Object.values(ROUTES)) expect(stored).toContain(`\n${method} /v1${path} `);
  expect(stored).toContain('\nGET /v1/search ?q: string, limit?: integer -> 200 SearchHits (read)\n');
  expect(stored).toMatch(/\nSandboxUse\n {2}owner: string\n {2}sandboxId: string\n/);
  expect(stored).toMatch(/\n {2}choices: \{\}\n {4}model\?: string\n/);
});
