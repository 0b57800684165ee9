import { expect, test } from 'vitest';
import { changeRequests, pairsBeforeAndAfter, pathsIn } from './paths.ts';

test('paths in backticks and links are found, other code is not', () => {
  const text = [
    'See `src/core/turn.ts`, `engine/engine.ts`, `test/contracts/` and [a page](docs/http.md#streams "title"), [the web](https://example.org/x).',
    'Not `session/update`, `npm test`, `src`, `throughline/client` or `src/agents/NAME/`.',
  ].join('\n');
  expect(pathsIn(text)).toEqual(['src/core/turn.ts', 'src/engine/engine.ts', 'test/contracts/', 'docs/http.md']);
});

test('questions are found with the files that their answers name', () => {
  const text = [
    '# Contributing',
    '## Where would I add …',
    '**1. … a store?** In `src/stores`.',
    'And `src/compose.ts`, `package.json`, and no `Store`, `store.close` or `npm run api`.',
    '**2. … a button?** Nowhere.',
    '**3. … a migration?** `node scripts/write.js --all` writes `current.ts`.',
    '## Style',
    '**4. no question** `src/core/turn.ts`',
  ].join('\n');
  expect(changeRequests(text)).toEqual([
    { question: '1. … a store?', paths: ['src/stores', 'src/compose.ts', 'package.json'] },
    { question: '2. … a button?', paths: [] },
    { question: '3. … a migration?', paths: ['scripts/write.js', 'current.ts'] },
  ]);
});

test('only the rewritten sentences of “Plain English” are counted, without the heads of the tables', () => {
  const table = ['| before | after | why |', '|---|---|---|', '| a | b | c |', '| d | e | f |'].join('\n');
  const text = `# C\n\n## Plain English\n\n${table}\n\n### Names\n\n${table}\n\n## Style\n${table}`;
  expect(pairsBeforeAndAfter(text)).toBe(4);
  expect(pairsBeforeAndAfter(`# C\n\n## Style\n${table}`)).toBe(0);
});
