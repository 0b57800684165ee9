import { expect, test } from 'vitest';
import { linesOf } from './patch.ts';

test('lines have their numbers, and the header of a patch is left out', () => {
  const patch = [
    'diff --git a/a.txt b/a.txt',
    '--- a/a.txt',
    '+++ b/a.txt',
    '@@ -3,3 +3,3 @@ function x() {',
    ' same',
    '-old',
    '--- looks like a head',
    '+new',
    '\\ No newline at end of file',
    '',
  ].join('\n');
  expect(linesOf(patch).map(({ kind, text, number }) => [kind, text, number])).toEqual([
    ['place', '@@ -3,3 +3,3 @@ function x() {', null],
    ['same', 'same', 3],
    ['removed', 'old', 4],
    ['removed', '-- looks like a head', 5],
    ['added', 'new', 4],
    ['place', 'No newline at end of file', null],
  ]);
});

test('an empty file has no lines', () => {
  expect(linesOf('diff --git a/e b/e\nnew file mode 100644\n')).toEqual([]);
});
