import { expect, test } from 'vitest';
import {
  bounded,
  changedFile,
  MOST_FILES,
  MOST_PATCH,
  MOST_PATCHES,
  patchesOf,
  rawEntries,
  untrackedFile,
} from './changes.ts';

test('the file list of git is read, with any characters in a path', () => {
  const raw =
    ':100644 100644 a b M\0a b\nc.txt\0:000000 100644 0 b A\0ä"\0:100644 000000 a 0 D\0gone\0:100644 120000 a b T\0l\0';
  expect(rawEntries(raw)).toEqual([
    { path: 'a b\nc.txt', change: 'modified' },
    { path: 'ä"', change: 'added' },
    { path: 'gone', change: 'deleted' },
    { path: 'l', change: 'retyped' },
  ]);
  expect(rawEntries('')).toEqual([]);
});

test('a patch is cut at its headers, and at nothing that a file could contain', () => {
  const one =
    'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-diff --git a/y b/y\n+a\rdiff --git a/z b/z\n+++ b/no\n---\n';
  const two = 'diff --git a/l b/l\ndeleted file\n--- a/l\n@@ -1 +0,0 @@\n-text\n';
  const three = 'diff --git a/l b/l\nnew file\n+++ b/l\n@@ -0,0 +1 @@\n+target\n\\ No newline at end of file\n';
  const entries = [{ change: 'modified' }, { change: 'retyped' }, { change: 'added' }] as const;
  expect(patchesOf(entries, one + two + three)).toEqual([one, two + three, '']);
  expect(changedFile('x', 'modified', one, true)).toMatchObject({ added: 2, removed: 2, patch: one });
  expect(changedFile('l', 'retyped', two + three, true)).toMatchObject({ added: 1, removed: 1 });
});

test('a file that is not text, cut off or too large is named without its lines', () => {
  const none = { added: null, removed: null, patch: null };
  const binary = 'diff --git a/x b/x\nBinary files a/x and b/x differ\n';
  expect(changedFile('x', 'modified', binary, true)).toMatchObject(none);
  expect(changedFile('x', 'modified', '@@ -1 +1 @@\n+Binary files a and b differ\n', true)).toMatchObject({ added: 1 });
  expect(changedFile('x', 'modified', '@@ -1 +1 @@\n+a\n', false)).toMatchObject(none);
  expect(changedFile('x', 'modified', `@@ -1 +1 @@\n+${'a'.repeat(MOST_PATCH)}\n`, true)).toMatchObject(none);
  for (const text of [null, 'a\0b']) expect(untrackedFile('x', text)).toMatchObject(none);
});

test('an untracked file is shown as if it had been added', () => {
  expect(untrackedFile('a', 'one\ntwo')).toMatchObject({
    ...{ change: 'untracked', added: 2, removed: 0 },
    patch:
      'diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n',
  });
  expect(untrackedFile('a', '')).toMatchObject({ added: 0, patch: 'diff --git a/a b/a\nnew file mode 100644\n' });
});

test('files and patches are bounded, by path, and what is left out is counted', () => {
  const file = (path: string) => untrackedFile(path, 'x'.repeat(100_000));
  const all = Array.from({ length: MOST_FILES + 7 }, (_, n) => file(`${20_000 - n}`));
  const { files, more } = bounded('h', all, 1);
  expect([files.length, more, files[0]?.path]).toEqual([MOST_FILES, 8, '19494']);
  const shown = files.filter(({ patch }) => patch !== null);
  expect(shown.reduce((sum, { patch }) => sum + (patch?.length ?? 0), 0)).toBeLessThanOrEqual(MOST_PATCHES);
  expect([shown.length > 30, files.slice(0, shown.length)]).toEqual([true, shown]);
});
