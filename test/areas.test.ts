import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ALONE, AREAS, NOT_QUICK, vitestArguments } from '../scripts/test-areas.js';

const root = join(import.meta.dirname, '..');
const files = globSync('{src,web/src,test}/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] });
const paths = globSync('{src,web/src,test}/**/*', { cwd: root, exclude: ['**/node_modules/**'] });

test('every test file is in an area', () => {
  const all = Object.values(AREAS).flat();
  expect(files.length).toBeGreaterThan(200);
  expect(files.filter((file) => !all.some((start) => file.startsWith(start)))).toEqual([]);
});

test('every path of an area, and of what the quick run leaves out, exists', () => {
  const all = [...Object.values(AREAS).flat(), ...NOT_QUICK, ...ALONE];
  expect(all.filter((start) => !paths.some((path) => `${path}/`.startsWith(start)))).toEqual([]);
});

test('a file that shares its process imports no other test file, mocks no module and chooses no way for others', () => {
  // A test file that was run before in the same process is not run again by an import, and what was chosen stays.
  const notShared = /\bimport[ (]'[^']+\.test\.ts'|\breachBy\(|^vi\.mock\(/m;
  const shared = files.filter((file) => !ALONE.some((start) => file.startsWith(start)));
  expect(shared.filter((file) => notShared.test(readFileSync(join(root, file), 'utf8')))).toEqual([]);
});

test('the name of an area becomes its paths; other arguments go to vitest as they are', () => {
  expect(vitestArguments(['faults', 'e2e/cli', '-t', 'core'], files)).toEqual({
    args: ['test/faults/', 'e2e/cli', '-t', 'core'],
  });
  expect(vitestArguments([], files)).toEqual({ args: [] });
});

test('a word that is neither an area nor in the path of a test is named', () => {
  expect(vitestArguments(['core', 'enigne'], files)).toEqual({ unknown: 'enigne' });
});
