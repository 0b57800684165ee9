import { describe, expect, test } from 'vitest';
import { type Decision, faultsOfDecisions } from './decisions.ts';

const first: Decision = { name: '0001-one-lease.md', text: '# 0001 One lease\n' };
const second: Decision = { name: '0002-two-clocks.md', text: '# 0002 Two clocks\n' };
const third: Decision = { name: '0003-three.md', text: '# 0003 Three\n' };
const row = ({ name }: Decision, status = '') => `| [${name.slice(0, 4)}](${name}) | what it decides | ${status} |\n`;

describe('decisions', () => {
  test('with the right numbers, titles and rows in the index are accepted', () => {
    expect(faultsOfDecisions([second, first], `# Decisions\n\n${row(first)}${row(second)}`)).toEqual([]);
  });

  test('with a gap in their numbers are reported', () => {
    expect(faultsOfDecisions([first, third], row(first) + row(third))).toEqual(['0003-three.md should be 0002']);
  });

  test('with the same number are reported', () => {
    const twin = { name: '0001-also.md', text: '# 0001 Also\n' };
    expect(faultsOfDecisions([first, twin], row(twin) + row(first))).toEqual(['0001-one-lease.md should be 0002']);
  });

  test('whose title has another number are reported', () => {
    const wrong = { ...second, text: '# 2. Two clocks\n' };
    expect(faultsOfDecisions([first, wrong], row(first) + row(wrong))).toEqual([
      '0002-two-clocks.md does not begin with "# 0002 "',
    ]);
  });

  test('that are missing in the index, or in the wrong order there, are reported', () => {
    expect(faultsOfDecisions([first, second], row(first))).toEqual([
      'the index has no row for 0002-two-clocks.md in its place',
    ]);
    expect(faultsOfDecisions([first], row(first) + row(second))).toHaveLength(1);
    expect(faultsOfDecisions([first, second], row(second) + row(first))).toHaveLength(2);
  });

  test.each([
    ['Replaced by', 'Replaces'],
    ['Amended by', 'Amends'],
  ])('that are %s another one are reported unless both files and the index say so', (passive, active) => {
    const old = { ...first, text: `${first.text}\n${passive} [0002](0002-two-clocks.md).\n` };
    const later = { ...second, text: `${second.text}\n${active} [0001](0001-one-lease.md).\n` };
    const index = row(first, `${passive.toLowerCase()} [0002](0002-two-clocks.md)`) + row(second);
    expect(faultsOfDecisions([old, later], index)).toEqual([]);
    expect(faultsOfDecisions([old, second], index)).toHaveLength(1);
    expect(faultsOfDecisions([first, later], index)).toHaveLength(2);
    expect(faultsOfDecisions([old, later], row(first) + row(second))).toHaveLength(1);
    const others = `${passive.toLowerCase()} [0002](0002-two-clocks.md), [0003](0003-three.md)`;
    expect(faultsOfDecisions([old, later, third], row(first, others) + row(second) + row(third))).toEqual([
      `the index says that 0001 is ${passive.toLowerCase()} 0003, which 0001-one-lease.md does not say`,
    ]);
  });
});
