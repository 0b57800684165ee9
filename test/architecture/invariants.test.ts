import { describe, expect, test } from 'vitest';
import { faultsOfRules, rulesIn, unknownRules } from './invariants.ts';

const text = [
  '# Invariants',
  'Some words about R1.',
  '## R1 One writer',
  'It forbids much.',
  '- `test/a.test.ts` › a worker that lost its lease writes nothing',
  '- `test/b.test.ts`',
  '## R2 One end',
  "- `src/core/turn.test.ts` › it's over",
].join('\n');
const files: Record<string, string> = {
  'test/a.test.ts': `test('a worker that lost its lease writes nothing, ever', () => {})`,
  'test/b.test.ts': '',
  'src/core/turn.test.ts': `test('it\\'s over', () => {})`,
};
const read = (path: string) => files[path] ?? null;

describe('INVARIANTS.md', () => {
  test('is read: rules with the tests that they name', () => {
    expect(rulesIn(text)).toEqual([
      {
        id: 'R1',
        tests: [
          { file: 'test/a.test.ts', name: 'a worker that lost its lease writes nothing' },
          { file: 'test/b.test.ts', name: null },
        ],
      },
      { id: 'R2', tests: [{ file: 'src/core/turn.test.ts', name: "it's over" }] },
    ]);
    expect(faultsOfRules(rulesIn(text), read)).toEqual([]);
  });

  test.each([
    ['a rule without a test', '## R1 One writer\nwords', 'R1 names no test'],
    ['a test file that is gone', '## R1 x\n- `test/gone.test.ts`', 'R1 names test/gone.test.ts, which does not exist'],
    ['a test that is gone', '## R1 x\n- `test/b.test.ts` › it holds', 'R1: test/b.test.ts has no test “it holds”'],
    ['a hole in the numbers', '## R2 x\n- `test/b.test.ts`', 'R2 stands where R1 should'],
  ])('is refused with %s', (_, wrong, why) => {
    expect(faultsOfRules(rulesIn(wrong), read)).toEqual([why]);
  });
});

describe('a citation', () => {
  const rules = rulesIn(text);

  test.each([
    ['// never twice (R7)', ['R7']],
    ['see R1–R3, R12', ['R3', 'R12']],
    ['R1: one writer; R2, R9 and R9', ['R9']],
  ])('of a rule that is not there is found: %s', (citing, unknown) => {
    expect(unknownRules(citing, rules)).toEqual(unknown);
  });

  test.each(['(R1, R2)', 'the class TR7', 'R7a', 'id-R7', 'R0'])('is not seen where there is none: %s', (citing) => {
    expect(unknownRules(citing, rules)).toEqual([]);
  });
});
