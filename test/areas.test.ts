import { spawnSync } from 'node:child_process';
import { globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  ALONE,
  AREAS,
  leftOut,
  leftOutInWords,
  NOT_QUICK,
  ON_DISK,
  PARTS,
  vitestArguments,
} from '../scripts/test-areas.js';
import { folderOf, removeLeft } from '../scripts/test-folder.js';
import { partsOf, tableOf } from '../scripts/test-parts.js';
import { mountSmall, NO_SMALL_DISK } from './faults/full-disk/small-disk.ts';
import { temporaryFolder } from './temporary-folder.ts';

const root = join(import.meta.dirname, '..');
const files = globSync('{src,web/src,test}/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] });
const paths = globSync('{src,web/src,test}/**/*', { cwd: root, exclude: ['**/node_modules/**'] });

test('every test file is in an area', () => {
  const all = Object.values(AREAS).flat();
  expect(files.length).toBeGreaterThan(200);
  expect(files.filter((file) => !all.some((start) => file.startsWith(start)))).toEqual([]);
});

test('every path in the lists of areas, parts and exceptions exists', () => {
  const all = [...Object.values(AREAS).flat(), ...Object.values(PARTS).flat(), ...NOT_QUICK, ...ALONE, ...ON_DISK];
  expect(all.filter((start) => !paths.some((path) => `${path}/`.startsWith(start)))).toEqual([]);
});

test('a file that shares its process imports no other test file, and mocks no module', () => {
  // A test file that has already run in the process does not run again when it is imported (`testsBy` in test/e2e/support/way.ts does).
  const notShared = /\bimport[ (]'[^']+\.test\.ts'|^vi\.mock\(/m;
  const shared = files.filter((file) => !ALONE.some((name) => file === `${name}.test.ts`));
  expect(shared.filter((file) => notShared.test(readFileSync(join(root, file), 'utf8')))).toEqual([]);
});

test('the name of an area becomes its paths; other arguments go to vitest as they are', () => {
  expect(vitestArguments(['faults', 'e2e/cli', '-t', 'core'], files)).toEqual({
    args: ['test/faults/', 'e2e/cli', '-t', 'core'],
    files: files.filter((file) => file.startsWith('test/faults/') || file.includes('e2e/cli')),
  });
  expect(vitestArguments([], files)).toEqual({ args: [], files });
});

test('a word that is neither an area nor part of a path is reported', () => {
  expect(vitestArguments(['core', 'enigne'], files)).toEqual({ unknown: 'enigne' });
});

test('`npm test` and the parts that one names leave out their files', () => {
  expect(leftOut({})).toEqual([]);
  expect(leftOut({ THROUGHLINE_WITHOUT: 'browser,database' })).toEqual([
    ...(PARTS.browser ?? []),
    ...(PARTS.database ?? []),
  ]);
  expect(leftOut({ THROUGHLINE_QUICK: '1' })).toEqual(NOT_QUICK);
});

test('the end of `npm test` counts what was left out, each file once, and names the command that runs it', () => {
  const some = [
    'test/browser/a.test.ts',
    'test/agents/kill-series/ssh.test.ts',
    'test/faults/b.test.ts',
    'src/core/c.test.ts',
  ];
  const [counted, command] = leftOutInWords(some);
  expect(counted).toContain(
    '3 of 4 test files (database 0, sandboxes 1, browser 1, real agents 0, slow or only for publishing 1)',
  );
  expect(command).toContain('`npm run test:all`');
});

test('files that run at the same time share the elapsed time, and the time of a part is the sum of its shares', () => {
  const run = (from: number, to: number) => ({ from, to, seconds: 0, processor: 2, tests: 3 });
  const parts = partsOf({
    'test/browser/a.test.ts': run(0, 60_000),
    'src/core/b.test.ts': run(0, 20_000),
    'src/core/c.test.ts': run(30_000, 60_000),
  });
  expect(parts).toEqual({
    browser: { wall: 10 + 10 + 15, processor: 2, tests: 3 },
    'the rest': { wall: 10 + 15, processor: 4, tests: 6 },
  });
  expect(tableOf(parts)).toEqual([
    'part      time  processor s  tests',
    'browser   0:35            2      3',
    'the rest  0:25            4      6',
  ]);
});

test('a test of a real agent in a sandbox counts for the part "sandboxes"', () => {
  const run = { from: 0, to: 1_000, seconds: 1, processor: 1, tests: 1 };
  expect(Object.keys(partsOf({ 'test/agents/kill-series/ssh.test.ts': run }))).toEqual(['sandboxes']);
  expect(Object.keys(partsOf({ 'test/agents/claude/cli.test.ts': run }))).toEqual(['real agents']);
});

test('temporary folders are in memory if there is room, and those of isolated programs are on disk', () => {
  const both = { THROUGHLINE_TEST_DISK: '/tmp', THROUGHLINE_TEST_MEMORY: '/dev/shm/tl-1' };
  expect(folderOf('test/e2e/backup.test.ts', both)).toBe('/dev/shm/tl-1');
  expect(folderOf('test/contracts/sandbox/bubblewrap.test.ts', both)).toBe('/tmp');
  expect(folderOf('test/e2e/backup.test.ts', { THROUGHLINE_TEST_DISK: '/tmp' })).toBe('/tmp');
  expect(tmpdir()).toBe(folderOf('test/areas.test.ts', process.env));
});

test('what a killed run has left is removed, also if a test of it had mounted a disk there', (context) => {
  const memory = temporaryFolder();
  const left = join(memory, `tl-${spawnSync('true').pid}`);
  const disk = join(left, 'throughline-test-a/disk');
  if (!mountSmall(disk, 1)) context.skip(NO_SMALL_DISK);
  writeFileSync(join(disk, 'file'), 'a');
  const running = `tl-${process.pid}`;
  writeFileSync(join(memory, running), '');
  removeLeft(memory);
  expect(readdirSync(memory)).toEqual([running]);
});
