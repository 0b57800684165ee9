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
    'test/a.test.ts': `test('a worker that lost its lease writes nothing, ever', () => expect(end).toBe(1))`,
    'test/b.test.ts': `describe('a turn', () => test.skipIf(isWindows).each(ROWS)(\`\${it} runs\`, () => expect(end).toBe(1)))`,
    'test/skipped.test.ts': `// it holds\n  test.skip('it ends', () => {})\n  test('it runs', () => expect(end).toBe(1))`,
    'test/idle.test.ts': `test('it ends', () => expect(end).toBe(1)); test('it runs', () => {})`,
    'test/empty.test.ts': `export const NAME = 'it ends';\ncheck('it ends')`,
    'src/core/turn.test.ts': `test('it\\'s over', () => expect(end).toBe(1))`,
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
      'R1: test/a.test.ts has no test “a worker that lost its lease reads nothing” that runs and expects something',
    ],
    [
      'a test that is gone',
      rule('R1', '- `test/a.test.ts` › it runs'),
      'R1: test/a.test.ts has no test “it runs” that runs and expects something',
    ],
    [
      'a file in which a test is skipped',
      rule('R1', '- `test/skipped.test.ts`'),
      'R1 names test/skipped.test.ts, which has no test, or one that is skipped or expects nothing',
    ],
    [
      'a file in which a test expects nothing',
      rule('R1', '- `test/idle.test.ts`'),
      'R1 names test/idle.test.ts, which has no test, or one that is skipped or expects nothing',
    ],
    [
      'a file without a test',
      rule('R1', '- `test/empty.test.ts`'),
      'R1 names test/empty.test.ts, which has no test, or one that is skipped or expects nothing',
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
  /** `PASS` is a test's function. */
  const faults = (source: string, others: Record<string, string> = {}) => {
    const text = source.replaceAll('PASS', '() => { expect(end).toBe(1) }');
    const all = new Map(Object.entries({ 'a.test.ts': text, ...others }));
    return faultsOfRules(rulesIn(`## R1 x\n${parts.join('\n')}\n- \`a.test.ts\` › it ends`), all);
  };

  test.each([
    `test('it ends', PASS)`,
    `it("it ends, once", { timeout: 9 }, PASS)`,
    `test(\`\${how} it ends\`, PASS)`,
    `test.concurrent.each(ROWS)('%s: it ends', PASS)`,
    'test.each`a`("it ends", PASS)',
    `describe.each(ROWS)('a turn', () => { test('it ends', PASS) })`,
    `test('it ends', (context) => { if (why) context.skip(why); expect(end).toBe(1) })`,
    `test('it ends', ({ skip }) => { if (why) skip(why); expect(end).toBe(1) })`,
    `test('it ends', (context) => { rows.skip(1); expect(end).toBe(1) })`,
    `function suite() { test('it ends', PASS) } suite()`,
    `const suite = () => test('it ends', PASS); for (const each of [suite]) each()`,
    `const parts = { suite }; function suite() { test('it ends', PASS) }`,
    `if (isLinux) test('it ends', PASS)`,
    `test.skipIf(isWindows)('it ends', PASS)`,
    `describe.skip('another', PASS); test('it ends', PASS)`,
    `test.skip('it ends', PASS); test('it ends here', PASS)`,
    `const isLinux = start(); if (isLinux) test('it ends', PASS)`,
    `let off = false; if (off) test('it ends', PASS)`,
    `const off = false; if (!off) test('it ends', PASS)`,
    `const off = false; function f(off) { if (off) test('it ends', PASS) } f(true)`,
    `test('it ends', { fails: isOld }, PASS)`,
    `test('it ends', (c) => { if (false) c.skip(); expect(end).toBe(1) })`,
    `if (isOld) throw stop(); test('it ends', PASS)`,
    `test('it ends', () => expect.poll(end).not.toBe(1))`,
    `test('it ends', () => expect(end()).resolves.toBe(1))`,
    `test('it ends', async () => { for (const each of rows) await run(() => { expect(each).toBe(1) }) })`,
    `test('it ends', body); function body() { expect(end).toBe(1) }`,
    `test('it ends', () => check()); const check = () => all(); function all() { check(); expect(end).toBe(1) }`,
    `test('it ends', () => new Reader().check()); class Reader { check() { expect(end).toBe(1) } }`,
    `const reader = open(); test('it ends', () => reader.check()); const open = () => ({ check: PASS })`,
    `test.each([['a', PASS]])('it ends', (_, check) => check())`,
    `const ROWS = [{ check: PASS }]; test.for(ROWS)('it ends', (row) => row.check())`,
    `import { expect, test } from 'vitest'; test('it ends', PASS)`,
    `export const it = 1; test('it ends', ({ expect }) => { expect(end).toBe(1) })`,
  ])('is found: %s', (source) => {
    expect(faults(source)).toEqual([]);
  });

  test.each([
    '',
    `// test('it ends', PASS)`,
    `export const NAME = 'it ends'`,
    `test('it runs', () => { say('it ends') })`,
    `expect('it ends').toBe(end)`,
    `describe('it ends', PASS)`,
    `test.skip('it ends', PASS)`,
    `test.todo('it ends')`,
    `test.concurrent.skip.each(ROWS)('it ends', PASS)`,
    `test.skipIf(true)('it ends', PASS)`,
    `test.runIf(false)('it ends', PASS)`,
    `test.skipIf(true).each(ROWS)('it ends', PASS)`,
    `test('it ends', { skip: true }, PASS)`,
    `describe.skip('a turn', () => { describe('a', () => { test('it ends', PASS) }) })`,
    `describe.skipIf(true)('a turn', () => { test('it ends', PASS) })`,
    `describe('a turn', { skip: true }, () => { test('it ends', PASS) })`,
    `test('it ends', (context) => { context.skip('never'); expect(end).toBe(1) })`,
    `test('it ends', async (context) => { await start(); context.skip('never'); expect(end).toBe(1) })`,
    `test('it ends', ({ skip }) => { skip('never'); expect(end).toBe(1) })`,
    `test('it ends', { timeout: 9 }, ({ skip: leave }) => { expect(end).toBe(1); return leave('never') })`,
    `test.each([])('it ends', PASS)`,
    `test.for([] as const)('it ends', PASS)`,
    `describe.each([])('a turn', () => { test('it ends', PASS) })`,
    `if (false) test('it ends', PASS)`,
    `if (true) start(); else { test('it ends', PASS) }`,
    `false && test('it ends', PASS)`,
    `const found = false ? test('it ends', PASS) : null`,
    `function suite() { test('it ends', PASS) }`,
    `export const suite = () => describe('a turn', () => { test('it ends', PASS) })`,
    `function suite() { test('it ends', PASS); suite() }`,
    `function suite() { test('it ends', PASS) } if (false) suite()`,
    `function suite() { test('it ends', PASS) } describe.skip('a turn', () => suite())`,
    `function suite() { test('it ends', PASS) } function all() { suite() }`,
    `function suite() { test('it ends', PASS) } const names = { suite: 1 }; names.suite`,
    `test('it ends')`,
    `test('it ends', () => {})`,
    `test('it ends', async () => { await start(); stop() })`,
    `test('it ends', () => { expect(end) })`,
    `test('it ends', () => { expect(true).toBe(true) })`,
    `test('it ends', () => { expect.assertions(0); stop(expect.any(String)) })`,
    `test('it ends', () => { return; expect(end).toBe(1) })`,
    `test('it ends', () => { if (true) { return } expect(end).toBe(1) })`,
    `test('it ends', () => { if (a) return; else throw b; expect(end).toBe(1) })`,
    `test('it ends', () => { if (false) expect(end).toBe(1) })`,
    `const ROWS = []; test('it ends', () => { for (const row of ROWS) expect(row).toBe(1) })`,
    `test('it ends', () => { start() }); function start() { stop() } function check() { expect(end).toBe(1) }`,
    `test('it ends', () => { check() }); function check() { return; expect(end).toBe(1) }`,
    `test('it ends', (check) => { check() }); function check() { expect(end).toBe(1) }`,
    `test.each([['a', PASS]])('it ends', (_, check) => start())`,
    `test.each([PASS])('it ends', () => {})`,
    `test('it ends', () => { all.check() }); function check() { expect(end).toBe(1) }`,
    `test('it ends', () => { a() }); function a() { b() } function b() { a() }`,
    `const expect = () => ({ toBe: stop }); test('it ends', PASS)`,
    `const test = (name, run) => null; test('it ends', PASS)`,
    `test.fails('it ends', PASS)`,
    `test.concurrent.fails.each(ROWS)('it ends', PASS)`,
    `test('it ends', { fails: true }, PASS)`,
    `const off = false; if (off) test('it ends', PASS)`,
    `const off = false as boolean; if (off && isLinux) test('it ends', PASS)`,
    `const on = true; const off = !on; if (off) test('it ends', PASS)`,
    `const on = true; on || test('it ends', PASS)`,
    `const on = 1; test.skipIf(on)('it ends', PASS)`,
    `const skip = true; test('it ends', { skip }, PASS)`,
    `const ROWS = [] as const; test.each(ROWS)('it ends', PASS)`,
    `for (const row of []) test('it ends', PASS)`,
    `while (false) test('it ends', PASS)`,
    `function suite() { return; test('it ends', PASS) } suite()`,
    `describe('a turn', () => { if (true) { return } test('it ends', PASS) })`,
    `throw new Error('off'); test('it ends', PASS)`,
    `function suite() { test('it ends', PASS) } function all() { return; suite() } all()`,
    `test('it ends', (c) => { if (true) c.skip(); expect(end).toBe(1) })`,
    `const off = true; test('it ends', (c) => { if (off) { c.skip('off') } expect(end).toBe(1) })`,
    `test('it ends', (c) => { try { c.skip() } finally { stop() } expect(end).toBe(1) })`,
    `test('it ends', body); function body(c) { c.skip(); expect(end).toBe(1) }`,
  ])('is reported as missing: %s', (source) => {
    expect(faults(source)).toEqual(['R1: a.test.ts has no test “it ends” that runs and expects something']);
  });

  test.each<[string, Record<string, string>, boolean]>([
    ['in a function that it imports', { 'b.ts': 'export function check() { expect(end).toBe(1) }' }, true],
    [
      'in a function that another file exports again',
      {
        'b.ts': `export { all as check } from './c.ts'`,
        'c.ts': 'const of = () => expect(end).toBe(1); export { of as all }',
      },
      true,
    ],
    ['in a file that is not a test', {}, false],
    ['in another function', { 'b.ts': 'export function check() {} function f() { expect(end).toBe(1) }' }, false],
  ])('may have its expectation %s', (_, others, isFound) => {
    const source = `import { check } from './b.ts'; test('it ends', () => check())`;
    expect(faults(source, others).length).toBe(isFound ? 0 : 1);
  });
});

describe('a suite that a rule names, in a file that is not run by itself', () => {
  const suite = `export function suite() { test('it ends', () => expect(end).toBe(1)) }`;
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
    expect(
      faults({ 'test/a.test.ts': `import './suites/suite.ts'` }, `test('it ends', () => expect(end).toBe(1))`),
    ).toEqual([]);
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
    expect(faults(others)).toEqual(['R1: test/suites/suite.ts has no test “it ends” that runs and expects something']);
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
