import { expect, test } from 'vitest';
import { crowdedFolders, MOST_FILES, meaninglessFolders } from './folders.ts';

const folder = (name: string, files: number) => Array.from({ length: files }, (_, n) => `${name}/file-${n}.ts`);

test('a folder with too many files is named; tests and the files of its subfolders do not count', () => {
  const full = [...folder('engine/turn', MOST_FILES), 'engine/turn/file-1.test.ts', ...folder('engine/turn/open', 2)];
  expect(crowdedFolders(full)).toEqual([]);
  expect(crowdedFolders([...full, 'engine/turn/one-more.ts'])).toEqual(['engine/turn holds 13 files, and may hold 12']);
});

test('a folder that is named after nothing is found at any depth', () => {
  expect(meaninglessFolders(['core/turn.ts', 'engine/utils/text.ts', 'agents/acp/helpers/x.ts'])).toEqual([
    'utils',
    'helpers',
  ]);
  expect(meaninglessFolders(['core/utils.ts', 'agents/shared/lines.ts'])).toEqual([]);
});
