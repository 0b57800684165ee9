import { expect, test } from 'vitest';
import {
  askedQuestion,
  denyOption,
  howToAllow,
  NOBODY_THERE,
  nobodyAnswered,
  type PermissionKind,
} from './permission.ts';

const options = (...kinds: PermissionKind[]) => kinds.map((kind) => ({ optionId: kind, name: kind, kind }));

test('a denial is for once, if the agent offers that', () => {
  expect(denyOption(options('allow_once', 'reject_always', 'reject_once'))?.kind).toBe('reject_once');
  expect(denyOption(options('allow_once', 'reject_always'))?.kind).toBe('reject_always');
});

test('there is no option for a denial if the agent offers none', () => {
  expect(denyOption(options('allow_once', 'allow_always'))).toBeNull();
  expect(denyOption([])).toBeNull();
});

const option = (optionId: string, kind: PermissionKind = 'allow_once') => ({ optionId, name: optionId, kind });
const asked = (more: Partial<Parameters<typeof askedQuestion>[0]> = {}) =>
  askedQuestion({
    title: 'May I?',
    toolCall: { title: 'ls' },
    options: [option('a'), option('b', 'reject_once')],
    ...more,
  });

test('a question that a person can answer stays as it is', () => {
  expect(asked()).toEqual({
    title: 'May I?',
    toolCall: { title: 'ls' },
    options: [option('a'), option('b', 'reject_once')],
    fault: null,
  });
});

test.each([
  ['two options with one id', [option('a'), option('a', 'reject_once')], 'two of its options have the id "a"'],
  [
    'two ids that differ in white space',
    [option('a'), option('a ', 'reject_once')],
    'two of its options have the id "a "',
  ],
  ['an option "deny" that allows', [option('deny', 'allow_always')], 'its option "deny" does the opposite'],
  ['an option "Yes" that rejects', [option('Yes', 'reject_once')], 'its option "Yes" does the opposite'],
  ['an empty id', [option(' ')], 'an option has an empty id'],
  ['an id that is too long to type', [option('x'.repeat(513))], 'the id of an option has more than 512 characters'],
  [
    'too many options',
    Array.from({ length: 100_000 }, (_, i) => option(`${i}`)),
    'it has 100000 options, more than 50',
  ],
])('a question with %s cannot be answered, and the reason is given', (_, given, fault) => {
  const question = asked({ options: given });
  expect(question.fault).toBe(`it cannot be answered: ${fault}`);
  expect(question.options.length).toBeLessThanOrEqual(50);
  expect(howToAllow(question.fault ?? '')).toMatch(/^Update the agent/);
});

test.each([
  ['one long text', { title: 'rm', rawInput: { command: `begin ${'x'.repeat(20_000_000)} end` } }],
  ['many texts', { title: 'rm', rawInput: Array.from({ length: 200_000 }, () => 'x'.repeat(100)) }],
])('a huge question is shortened, and says so: %s', (_, toolCall) => {
  const title = `rm ${'y'.repeat(20_000_000)} end`;
  const question = asked({ title, toolCall, options: [{ ...option('a'), name: 'n'.repeat(1_000_000) }] });
  expect(question.title).toMatch(/^rm y+\n\[… \d+ characters left out …\]\ny+ end$/);
  expect(JSON.stringify(question).length).toBeLessThan(75_000);
  expect(JSON.stringify(question.toolCall)).toContain('characters left out');
  expect(question.toolCall).toMatchObject({ title: 'rm' });
  expect(question.fault).toBeNull();
});

test.each([
  ['denied at once', NOBODY_THERE, /--permissions ask/, /waitSeconds/],
  ['denied after a while', nobodyAnswered(600_000), /in time.*waitSeconds/, /--permissions ask/],
])('what to do about a question that was %s', (_, reason, says, not) => {
  expect(howToAllow(reason)).toMatch(says);
  expect(howToAllow(reason)).not.toMatch(not);
  expect(howToAllow(reason)).toContain('in its own settings');
});
