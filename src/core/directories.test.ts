import { expect, test } from 'vitest';
import { createDirectories, type DirectoryMaker } from './directories.ts';

/** A file system with these directories. `refuse`: called before one is made; throws the error of the system. */
function fileSystem(there: readonly string[], refuse: (path: string) => void = () => {}) {
  const all = new Set(there);
  const made: string[] = [];
  const fs: DirectoryMaker = {
    statSync: (path) => (all.has(path) ? { isDirectory: () => true } : undefined),
    mkdirSync(path) {
      refuse(path);
      if (all.has(path)) throw Object.assign(new Error('EEXIST'), { code: 'EEXIST' });
      all.add(path);
      made.push(path);
    },
  };
  return { all, made, fs };
}

test.each([
  ['/', '/a/b/c', ['/a', '/a/b', '/a/b/c']],
  ['/a', '/a/b', ['/a/b']],
  ['/a', '/a', []],
  ['/', '/', []],
  ['/', 'b/c', ['b', 'b/c']],
])('if %s exists, creating %s creates %j', (there, path, expected) => {
  const { made, fs } = fileSystem([there]);
  createDirectories(path, fs);
  expect(made).toEqual(expected);
});

test('a system error is thrown without a retry', () => {
  const refused = Object.assign(new Error('no entries here'), { code: 'ENOENT' });
  const tried: string[] = [];
  const { fs } = fileSystem(['/proc'], (path) => {
    tried.push(path);
    throw refused;
  });
  expect(() => createDirectories('/proc/x/y', fs)).toThrow(refused);
  expect(tried).toEqual(['/proc/x']);
});

test('a directory that another process makes at the same time is kept', () => {
  const { all, made, fs } = fileSystem(['/'], (path) => path === '/a' && all.add('/a'));
  createDirectories('/a/b', fs);
  expect(made).toEqual(['/a/b']);
});
