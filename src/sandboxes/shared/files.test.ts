import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import { filesIn } from './files.ts';
import { localFolder } from './local-folder.ts';

function folder(...files: string[]): string {
  const path = temporaryFolder();
  for (const name of files) {
    mkdirSync(join(path, name, '..'), { recursive: true });
    writeFileSync(join(path, name), '');
  }
  return path;
}

/** A time limit that is long enough for a busy machine. */
const found = (root: string, match: string, limits: { most?: number } = {}) =>
  filesIn(localFolder(root), match, { ms: 60_000, ...limits });

test('files and folders are listed, without the folders of tools', async () => {
  const root = folder(
    'readme.md',
    'src/index.ts',
    'src/core/turn.ts',
    '.git/config',
    'node_modules/a/index.js',
    'ä b/c',
  );
  const { paths, more } = await found(root, '');
  expect(more).toBe(false);
  expect(paths.toSorted()).toEqual(
    [
      '.git/',
      'node_modules/',
      'readme.md',
      'src/',
      'src/core/',
      'src/core/turn.ts',
      'src/index.ts',
      'ä b/',
      'ä b/c',
    ].sort(),
  );
  expect((await found(root, 'index')).paths).toEqual(['src/index.ts']);
  expect((await found(root, 'node_modules/a/')).paths).toEqual(['node_modules/a/', 'node_modules/a/index.js']);
});

test('links are neither listed nor followed, and names with control characters are left out', async () => {
  const outside = folder('secret.txt');
  const root = folder('a.txt', 'line\nbreak');
  symlinkSync(outside, join(root, 'way-out'));
  symlinkSync(join(outside, 'secret.txt'), join(root, 'file'));
  symlinkSync('.', join(root, 'circle'));
  expect(await found(root, '')).toEqual({ paths: ['a.txt'], more: false });
});

test('a folder that cannot be read is left out; the rest is listed', async () => {
  const root = folder('closed/a', 'open/b');
  chmodSync(join(root, 'closed'), 0);
  onTestFinished(() => chmodSync(join(root, 'closed'), 0o700));
  const { paths } = await found(root, 'b');
  expect(paths).toContain('open/b');
});

test('a search is limited, looks at the nearest folders first, and says that there is more', async () => {
  const root = folder(...Array.from({ length: 30 }, (_, n) => `many/${n}`), 'near');
  const { paths, more } = await found(root, '', { most: 10 });
  expect(more).toBe(true);
  expect(paths).toContain('near');
  expect((await found(root, '')).more).toBe(false);
  expect((await filesIn(localFolder(root), '', { ms: -1 })).more).toBe(true);
  const deep = folder(`${'d/'.repeat(25)}end`);
  expect(await found(deep, 'end')).toEqual({ paths: [], more: true });
});
