import { describe, expect, test } from 'vitest';
import { faultsOfRules, rulesIn, unknownRules } from './invariants.ts';

const parts = ['**Rule.** One.', '**It forbids** two.', '**Fault it prevents.** Three.'];
const text = [
  '# Invariants',
  'Some words about R1.',
  '## R1 One writer',
  ...parts,
  '- `test/a.test.ts` › a worker that lost its lease writes nothing',
  '- `test/b.test.ts`',
  '## R2 One end',
  ...parts,
  "- `src/core/turn.test.ts` › it's over",
].join('\n');
const files: Record<string, string> = {
  'test/a.test.ts': `test('a worker that lost its lease writes nothing, ever', () => {})`,
  'test/b.test.ts': `describe('a turn', () => test.skipIf(isWindows).each(ROWS)(\`\${it} runs\`, () => {}))`,
  'test/skipped.test.ts': `// it holds\n  test.skip('it ends', () => {})\n  test('it runs', () => {})`,
  'test/empty.test.ts': `export const NAME = 'it ends';\ncheck('it ends')`,
  'src/core/turn.test.ts': `test('it\\'s over', () => {})`,
};
const read = (path: string) => files[path] ?? null;

describe('INVARIANTS.md', () => {
  test('is parsed into rules with the tests that they name', () => {
    expect(rulesIn(text)).toEqual([
      {
        id: 'R1',
        missing: [],
        tests: [
          { file: 'test/a.test.ts', name: 'a worker that lost its lease writes nothing' },
          { file: 'test/b.test.ts', name: null },
        ],
      },
      { id: 'R2', missing: [], tests: [{ file: 'src/core/turn.test.ts', name: "it's over" }] },
    ]);
    expect(faultsOfRules(rulesIn(text), read)).toEqual([]);
  });

  const rule = (id: string, ...lines: string[]) => [`## ${id} x`, ...parts, ...lines].join('\n');
  test.each([
    ['a rule without a test', rule('R1'), 'R1 names no test'],
    [
      'a test file that is gone',
      rule('R1', '- `test/gone.test.ts`'),
      'R1 names test/gone.test.ts, which does not exist',
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
    expect(faultsOfRules(rulesIn(wrong), read)).toEqual([why]);
  });
});

describe('a test that a rule names', () => {
  const faults = (source: string) =>
    faultsOfRules(rulesIn(`## R1 x\n${parts.join('\n')}\n- \`a.ts\` › it ends`), () => source);

  test.each([
    `test('it ends', () => {})`,
    `it("it ends, once", { timeout: 9 }, () => {})`,
    `test(\`\${how} it ends\`, () => {})`,
    `test.concurrent.each(ROWS)('%s: it ends', () => {})`,
    'test.each`a`("it ends", () => {})',
    `describe.each(ROWS)('a turn', () => { test('it ends', () => {}) })`,
    `export function suite() { test('it ends', (context) => { if (why) context.skip(why) }) }`,
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
  ])('is reported as missing: %s', (source) => {
    expect(faults(source)).toEqual(['R1: a.ts has no test “it ends”']);
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
