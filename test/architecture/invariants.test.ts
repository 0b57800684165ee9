import { describe, expect, test } from 'vitest';
import { faultsOfRules, rulesIn, unknownRules } from './invariants.ts';

const parts = ['**Rule.** One.', '**It forbids** two.', '**Fault it prevents.** Three.'];
const text = [
  '# Invariants',
  'Some words about R1.',
  '## R1 One writer',
  ...parts,
  '- `test/a.test.ts` › a worker that lost its lease writes nothing,',
  '  ever',
  '- `test/b.test.ts`',
  '## R2 One end',
  ...parts,
  "- `src/core/turn.test.ts` › it's over",
].join('\n');
const files = new Map(
  Object.entries({
    'test/a.test.ts': `test('a worker that lost its lease writes nothing, ever', () => {})`,
    'test/b.test.ts': `describe('a turn', () => test.skipIf(isWindows).each(ROWS)(\`\${it} runs\`, () => {}))`,
    'test/skipped.test.ts': `// it holds\n  test.skip('it ends', () => {})\n  test('it runs', () => {})`,
    'test/empty.test.ts': `export const NAME = 'it ends';\ncheck('it ends')`,
    'src/core/turn.test.ts': `test('it\\'s over', () => {})`,
  }),
);

describe('INVARIANTS.md', () => {
  test('is parsed into rules with the tests that they name', () => {
    expect(rulesIn(text)).toEqual([
      {
        id: 'R1',
        missing: [],
        tests: [
          { file: 'test/a.test.ts', name: 'a worker that lost its lease writes nothing, ever' },
          { file: 'test/b.test.ts', name: null },
        ],
      },
      { id: 'R2', missing: [], tests: [{ file: 'src/core/turn.test.ts', name: "it's over" }] },
    ]);
    expect(faultsOfRules(rulesIn(text), files)).toEqual([]);
  });

  const rule = (id: string, ...lines: string[]) => [`## ${id} x`, ...parts, ...lines].join('\n');
  test.each([
    ['a rule without a test', rule('R1'), 'R1 names no test'],
    [
      'a test file that is gone',
      rule('R1', '- `test/gone.test.ts`'),
      'R1 names test/gone.test.ts, which does not exist',
    ],
    [
      'a test with another name on its second line',
      rule('R1', '- `test/a.test.ts` › a worker that lost its lease', '  reads nothing'),
      'R1: test/a.test.ts has no test “a worker that lost its lease reads nothing”',
    ],
    ['a test that is gone', rule('R1', '- `test/a.test.ts` › it runs'), 'R1: test/a.test.ts has no test “it runs”'],
    [
      'a file in which a test is skipped',
      rule('R1', '- `test/skipped.test.ts`'),
      'R1 names test/skipped.test.ts, which has no test, or one that is skipped',
    ],
    [
      'a file without a test',
      rule('R1', '- `test/empty.test.ts`'),
      'R1 names test/empty.test.ts, which has no test, or one that is skipped',
    ],
    ['a gap in the numbers', rule('R2', '- `test/b.test.ts`'), 'R2 is in the place of R1'],
    [
      'a rule without an example',
      rule('R1', '- `test/b.test.ts`').replace('**Fault', '*Fault'),
      'R1 has no part **Fault it prevents.**',
    ],
  ])('is reported if it has %s', (_, wrong, why) => {
    expect(faultsOfRules(rulesIn(wrong), files)).toEqual([why]);
  });
});

describe('a test that a rule names', () => {
  const faults = (source: string) =>
    faultsOfRules(rulesIn(`## R1 x\n${parts.join('\n')}\n- \`a.test.ts\` › it ends`), new Map([['a.test.ts', source]]));

  test.each([
    `test('it ends', () => {})`,
    `it("it ends, once", { timeout: 9 }, () => {})`,
    `test(\`\${how} it ends\`, () => {})`,
    `test.concurrent.each(ROWS)('%s: it ends', () => {})`,
    'test.each`a`("it ends", () => {})',
    `describe.each(ROWS)('a turn', () => { test('it ends', () => {}) })`,
    `test('it ends', (context) => { if (why) context.skip(why) })`,
    `test('it ends', ({ skip }) => { if (why) skip(why) })`,
    `test('it ends', (context) => { rows.skip(1) })`,
    `function suite() { test('it ends', () => {}) } suite()`,
    `const suite = () => test('it ends', () => {}); for (const each of [suite]) each()`,
    `const parts = { suite }; function suite() { test('it ends', () => {}) }`,
    `if (isLinux) test('it ends', () => {})`,
    `test.skipIf(isWindows)('it ends', () => {})`,
    `describe.skip('another', () => {}); test('it ends', () => {})`,
    `test.skip('it ends', () => {}); test('it ends here', () => {})`,
  ])('is found: %s', (source) => {
    expect(faults(source)).toEqual([]);
  });

  test.each([
    '',
    `// test('it ends', () => {})`,
    `export const NAME = 'it ends'`,
    `test('it runs', () => { say('it ends') })`,
    `expect('it ends').toBe(end)`,
    `describe('it ends', () => {})`,
    `test.skip('it ends', () => {})`,
    `test.todo('it ends')`,
    `test.concurrent.skip.each(ROWS)('it ends', () => {})`,
    `test.skipIf(true)('it ends', () => {})`,
    `test.runIf(false)('it ends', () => {})`,
    `test.skipIf(true).each(ROWS)('it ends', () => {})`,
    `test('it ends', { skip: true }, () => {})`,
    `describe.skip('a turn', () => { describe('a', () => { test('it ends', () => {}) }) })`,
    `describe.skipIf(true)('a turn', () => { test('it ends', () => {}) })`,
    `describe('a turn', { skip: true }, () => { test('it ends', () => {}) })`,
    `test('it ends', (context) => context.skip('never'))`,
    `test('it ends', async (context) => { await start(); context.skip('never'); end() })`,
    `test('it ends', ({ skip }) => skip('never'))`,
    `test('it ends', { timeout: 9 }, ({ skip: leave }) => { return leave('never') })`,
    `test.each([])('it ends', () => {})`,
    `test.for([] as const)('it ends', () => {})`,
    `describe.each([])('a turn', () => { test('it ends', () => {}) })`,
    `if (false) test('it ends', () => {})`,
    `if (true) start(); else { test('it ends', () => {}) }`,
    `false && test('it ends', () => {})`,
    `const found = false ? test('it ends', () => {}) : null`,
    `function suite() { test('it ends', () => {}) }`,
    `export const suite = () => describe('a turn', () => { test('it ends', () => {}) })`,
    `function suite() { test('it ends', () => {}); suite() }`,
    `function suite() { test('it ends', () => {}) } if (false) suite()`,
    `function suite() { test('it ends', () => {}) } describe.skip('a turn', () => suite())`,
    `function suite() { test('it ends', () => {}) } function all() { suite() }`,
    `function suite() { test('it ends', () => {}) } const names = { suite: 1 }; names.suite`,
  ])('is reported as missing: %s', (source) => {
    expect(faults(source)).toEqual(['R1: a.test.ts has no test “it ends”']);
  });
});

describe('a suite that a rule names, in a file that is not run by itself', () => {
  const suite = `export function suite() { test('it ends', () => {}) }`;
  const faults = (others: Record<string, string>, source = suite) => {
    const all = new Map(Object.entries({ 'test/suites/suite.ts': source, ...others }));
    return faultsOfRules(rulesIn(`## R1 x\n${parts.join('\n')}\n- \`test/suites/suite.ts\` › it ends`), all);
  };

  test.each<[string, Record<string, string>]>([
    ['by a test', { 'test/a.test.ts': `import { suite } from './suites/suite.ts'; suite()` }],
    [
      'under another name',
      { 'test/a.test.ts': `import { suite as all } from './suites/suite.ts'; describe('a', all)` },
    ],
    [
      'by another suite',
      {
        'test/contract.ts': `import { suite } from './suites/suite.ts'; export function contract() { run({ suite }) }`,
        'test/a.test.ts': `import { contract } from './contract.ts'; contract()`,
      },
    ],
    [
      'through a file that exports it again',
      {
        'test/all.ts': `export { suite as all } from './suites/suite.ts'`,
        'test/a.test.ts': `import { all } from './all.ts'; all()`,
      },
    ],
  ])('is found if it is called %s', (_, others) => {
    expect(faults(others)).toEqual([]);
  });

  test('is found if its tests stand outside of functions, and a test imports it', () => {
    expect(faults({ 'test/a.test.ts': `import './suites/suite.ts'` }, `test('it ends', () => {})`)).toEqual([]);
  });

  test.each<[string, Record<string, string>]>([
    ['nobody imports it', {}],
    ['a test imports it and does not call it', { 'test/a.test.ts': `import { suite } from './suites/suite.ts'` }],
    ['a test imports only a type', { 'test/a.test.ts': `import type { suite } from './suites/suite.ts'; suite()` }],
    ['a test calls another function of that name', { 'test/a.test.ts': `import { suite } from './suite.ts'; suite()` }],
    [
      'a test calls it where nothing runs',
      { 'test/a.test.ts': `import { suite } from './suites/suite.ts'; if (false) suite()` },
    ],
    ['no test calls what calls it', { 'test/b.ts': `import { suite } from './suites/suite.ts'; suite()` }],
    [
      'two suites call only each other',
      {
        'test/b.ts': `import { suite } from './suites/suite.ts'; export function b() { suite(); c() } function c() { b() }`,
      },
    ],
  ])('is reported as missing if %s', (_, others) => {
    expect(faults(others)).toEqual(['R1: test/suites/suite.ts has no test “it ends”']);
  });
});

describe('a citation', () => {
  const rules = rulesIn(text);

  test.each([
    ['// never twice (R7)', ['R7']],
    ['see R1–R3, R12', ['R3', 'R12']],
    ['R1: one writer; R2, R9 and R9', ['R9']],
  ])('of a rule that does not exist is found: %s', (citing, unknown) => {
    expect(unknownRules(citing, rules)).toEqual(unknown);
  });

  test.each(['(R1, R2)', 'the class TR7', 'R7a', 'id-R7', 'R0'])('is not found in: %s', (citing) => {
    expect(unknownRules(citing, rules)).toEqual([]);
  });
});
