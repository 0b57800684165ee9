import { expect, test } from 'vitest';
import { SMALL, straySmallFiles } from './small-files.ts';

const lines = (count: number) => '//\n'.repeat(count);
const importing = (...paths: string[]) => paths.map((path) => `import '${path}';\n`).join('');

test('a small file with one importer in its folder is found, also if it imports only types; tests do not count as importers', () => {
  const files = [
    ['core/group.ts', lines(SMALL - 1)],
    ['core/group.test.ts', importing('./group.ts')],
    ['core/spawn.ts', `import type { Group } from './group.ts';\n${lines(SMALL)}`],
  ] as const;
  expect(straySmallFiles(files)).toEqual([`core/group.ts (49 lines) belongs into core/spawn.ts`]);
  expect(straySmallFiles(files, (path) => path === 'core/group.ts')).toEqual([]);
});

test.each([
  [
    'it is not small',
    [
      ['a/x.ts', lines(SMALL)],
      ['a/y.ts', importing('./x.ts')],
    ],
  ],
  [
    'two files import it',
    [
      ['a/x.ts', ''],
      ['a/y.ts', importing('./x.ts')],
      ['a/z.ts', importing('./x.ts')],
    ],
  ],
  [
    'its importer is in another folder',
    [
      ['a/x.ts', ''],
      ['b/y.ts', importing('../a/x.ts')],
    ],
  ],
  ['nothing imports it', [['a/x.ts', '']]],
] as const)('a file may stand alone when %s', (_, files) => {
  expect(straySmallFiles(files)).toEqual([]);
});
