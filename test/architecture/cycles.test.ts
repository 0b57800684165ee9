import { expect, test } from 'vitest';
import { importCycles } from './cycles.ts';

test('two files that import each other are a cycle, also by types only', () => {
  const files = [
    ['core/task.ts', `import type { Decision } from './decision.ts'`],
    ['core/decision.ts', `import { done } from './task.ts'`],
  ] as const;
  expect(importCycles(files)).toEqual([['core/decision.ts', 'core/task.ts']]);
});

test('a cycle over three folders is reported in the order of its imports', () => {
  const files = [
    ['engine/a.ts', `import './turn/b.ts'; import './alone.ts'`],
    ['engine/turn/b.ts', `export { c } from '../restore/c.ts'`],
    ['engine/restore/c.ts', `type A = import('../a.ts').A`],
    ['engine/alone.ts', ''],
  ] as const;
  expect(importCycles(files)).toEqual([['engine/a.ts', 'engine/turn/b.ts', 'engine/restore/c.ts']]);
});

test('a file that imports itself is a cycle', () => {
  expect(importCycles([['core/a.ts', `import { a } from './a.ts'`]])).toEqual([['core/a.ts']]);
});

test('each group of files is reported once, and a one-way import does not join two groups', () => {
  const files = [
    ['a.ts', `import './b.ts'; import './c.ts'; import './x.ts'`],
    ['b.ts', `import './a.ts'`],
    ['c.ts', `import './a.ts'`],
    ['x.ts', `import './y.ts'`],
    ['y.ts', `import './x.ts'`],
  ] as const;
  expect(importCycles(files)).toEqual([
    ['a.ts', 'b.ts'],
    ['x.ts', 'y.ts'],
  ]);
});

test('files that import each other in one direction only are no cycle', () => {
  const files = [
    ['a.ts', `import './b.ts'; import './c.ts'; import 'vitest'`],
    ['b.ts', `import './c.ts'`],
    ['c.ts', ''],
  ] as const;
  expect(importCycles(files)).toEqual([]);
});
