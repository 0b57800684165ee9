import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AREAS, NOT_QUICK, vitestArguments } from '../scripts/test-areas.js';

const root = join(import.meta.dirname, '..');
const files = globSync('{src,test}/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] });
const paths = globSync('{src,test}/**/*', { cwd: root, exclude: ['**/node_modules/**'] });

test('every test file is in an area', () => {
  const all = Object.values(AREAS).flat();
  expect(files.length).toBeGreaterThan(200);
  expect(files.filter((file) => !all.some((start) => file.startsWith(start)))).toEqual([]);
});

test('every path of an area, and of what the quick run leaves out, exists', () => {
  const all = [...Object.values(AREAS).flat(), ...NOT_QUICK];
  expect(all.filter((start) => !paths.some((path) => `${path}/`.startsWith(start)))).toEqual([]);
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
