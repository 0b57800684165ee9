import { expect, test } from 'vitest';
import {
  crowdedFolders,
  faultsOfEngineFolders,
  MOST_FILES,
  MOST_FILES_OF_ENGINE,
  meaninglessFolders,
} from './folders.ts';

const folder = (name: string, files: number) => Array.from({ length: files }, (_, n) => `${name}/file-${n}.ts`);

test('a folder with too many files is reported, without counting tests and the files of subfolders', () => {
  const full = [...folder('core/turn', MOST_FILES), 'core/turn/file-1.test.ts', ...folder('core/turn/open', 2)];
  expect(crowdedFolders(full)).toEqual([]);
  expect(crowdedFolders([...full, 'core/turn/one-more.ts'])).toEqual(['core/turn has 13 files; the limit is 12']);
  const ofEngine = folder('engine/turn', MOST_FILES_OF_ENGINE);
  expect(crowdedFolders(ofEngine)).toEqual([]);
  expect(crowdedFolders([...ofEngine, 'engine/turn/one-more.ts'])).toEqual([
    'engine/turn has 11 files; the limit is 10',
  ]);
});

test('a folder with a meaningless name is found at any depth', () => {
  expect(meaninglessFolders(['core/turn.ts', 'engine/utils/text.ts', 'agents/acp/helpers/x.ts'])).toEqual([
    'utils',
    'helpers',
  ]);
  expect(meaninglessFolders(['core/utils.ts', 'agents/shared/lines.ts'])).toEqual([]);
});

test('a folder of the engine without a file to read first is reported, and so is a first file that does not exist', () => {
  const document = '| folder | read first |\n|---|---|\n| `engine/turn` | `run-turn.ts` | how? |\n';
  const paths = ['engine/engine.ts', 'engine/turn/run-turn.ts', 'core/turn/turn.ts'];
  expect(faultsOfEngineFolders(document, paths)).toEqual([]);
  expect(faultsOfEngineFolders(document, [...paths, 'engine/worker/held.ts'])).toEqual([
    'engine/worker has no file to read first',
  ]);
  expect(faultsOfEngineFolders(document, ['engine/turn/turn.ts'])).toEqual(['engine/turn/run-turn.ts does not exist']);
});
