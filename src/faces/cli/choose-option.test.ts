import { expect, test } from 'vitest';
import type { PermissionOption } from '../../core/permission.ts';
import { chooseOption } from './choose-option.ts';

const OPTIONS: readonly PermissionOption[] = [
  { optionId: 'always', name: 'Always', kind: 'allow_always' },
  { optionId: 'once', name: 'Once', kind: 'allow_once' },
  { optionId: 'no', name: 'Never', kind: 'reject_always' },
  { optionId: 'allow', name: 'Not what it seems', kind: 'reject_once' },
];

test.each([
  ['once', 'once'],
  ['2', 'once'],
  ['yes', 'once'],
  ['Y', 'once'],
  ['deny', 'allow'],
  ['allow', 'allow'],
  ['no', 'no'],
])('the answer %s means the option %s: an id first, and a shorthand grants no more than once', (answer, optionId) => {
  expect(chooseOption(OPTIONS, answer)?.optionId).toBe(optionId);
});

test.each(['', '0', '5', 'perhaps', '-1', '1.5'])('the answer "%s" is none', (answer) => {
  expect(chooseOption(OPTIONS, answer)).toBeNull();
});

test('a shorthand that no option fits is no answer', () => {
  expect(chooseOption(OPTIONS.slice(0, 2), 'deny')).toBeNull();
  expect(chooseOption(OPTIONS.slice(2, 3), 'allow')).toBeNull();
});
