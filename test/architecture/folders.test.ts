import { expect, test } from 'vitest';
import { faultsOfEngineFolders, meaninglessFolders } from './folders.ts';

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
