import { expect, test } from 'vitest';
import { longFunctions, MOST_LINES } from './long-functions.ts';

const lines = (count: number) => '  step();\n'.repeat(count);

test.each([
  ['function run(): void {', '}'],
  ['class Worker {\n  private async run<T>(of: T) {', '}\n}'],
  ['export const run = async (): Promise<void> => {', '};'],
  ['const verbs = {\n  run: () => {', '}\n};'],
])('a function that does not fit on a screen is found: %s', (head, tail) => {
  expect(longFunctions('core/x.ts', `${head}\n${lines(MOST_LINES - 2)}${tail}`)).toEqual([]);
  expect(longFunctions('core/x.ts', `${head}\n${lines(MOST_LINES - 1)}${tail}`)).toEqual(['run has 61 lines']);
});

test('a long type and a class of many short functions are not long functions', () => {
  const methods = Array.from({ length: 50 }, (_, n) => `  m${n}() {\n    return ${n};\n  }\n`).join('');
  const fields = Array.from({ length: 100 }, (_, n) => `  readonly f${n}: number;\n`).join('');
  expect(longFunctions('core/x.ts', `class A {\n${methods}}\ninterface B {\n${fields}}`)).toEqual([]);
});

test('a component is a function', () => {
  const view = (count: number) => `export function View({ name }: Props) {\n${lines(count)}  return <p>{name}</p>;\n}`;
  expect(longFunctions('web/src/view.tsx', view(MOST_LINES - 3))).toEqual([]);
  expect(longFunctions('web/src/view.tsx', view(MOST_LINES - 2))).toEqual(['View has 61 lines']);
});
