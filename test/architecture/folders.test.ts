import { expect, test } from 'vitest';
import { crowdedFolders, faultsOfRooms, MOST_FILES, MOST_FILES_OF_ENGINE, meaninglessFolders } from './folders.ts';

const folder = (name: string, files: number) => Array.from({ length: files }, (_, n) => `${name}/file-${n}.ts`);

test('a folder with too many files is reported; tests and the files of its subfolders do not count', () => {
  const full = [...folder('core/turn', MOST_FILES), 'core/turn/file-1.test.ts', ...folder('core/turn/open', 2)];
  expect(crowdedFolders(full)).toEqual([]);
  expect(crowdedFolders([...full, 'core/turn/one-more.ts'])).toEqual(['core/turn holds 13 files, and may hold 12']);
  const room = folder('engine/turn', MOST_FILES_OF_ENGINE);
  expect(crowdedFolders(room)).toEqual([]);
  expect(crowdedFolders([...room, 'engine/turn/one-more.ts'])).toEqual(['engine/turn holds 11 files, and may hold 10']);
});

test('a folder with a name that says nothing is found at any depth', () => {
  expect(meaninglessFolders(['core/turn.ts', 'engine/utils/text.ts', 'agents/acp/helpers/x.ts'])).toEqual([
    'utils',
    'helpers',
  ]);
  expect(meaninglessFolders(['core/utils.ts', 'agents/shared/lines.ts'])).toEqual([]);
});

test('a room of the engine without a file to read first is reported, and so is a first file that does not exist', () => {
  const document = '| room | read first |\n|---|---|\n| `engine/turn` | `run-turn.ts` | how? |\n';
  const paths = ['engine/engine.ts', 'engine/turn/run-turn.ts', 'core/turn/turn.ts'];
  expect(faultsOfRooms(document, paths)).toEqual([]);
  expect(faultsOfRooms(document, [...paths, 'engine/worker/held.ts'])).toEqual([
    'engine/worker has no file to read first',
  ]);
  expect(faultsOfRooms(document, ['engine/turn/turn.ts'])).toEqual(['engine/turn/run-turn.ts is not there']);
});
