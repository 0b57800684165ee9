import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import type { PermissionOption } from '../../../../core/turn/permission.ts';
import { Output } from '../../output.ts';
import { askPermission, chooseOption } from './answers.ts';

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

test.each(['', '0', '5', 'perhaps', '-1', '1.5'])('"%s" is not an answer', (answer) => {
  expect(chooseOption(OPTIONS, answer)).toBeNull();
});

test('a shorthand without a matching option is not an answer', () => {
  expect(chooseOption(OPTIONS.slice(0, 2), 'deny')).toBeNull();
  expect(chooseOption(OPTIONS.slice(2, 3), 'allow')).toBeNull();
});

const TWO = [
  { optionId: 'a', name: 'Allow', kind: 'allow_once' },
  { optionId: 'r', name: 'Reject', kind: 'reject_once' },
] as const;

function asking(options: readonly PermissionOption[] = TWO, title = 'write \u001b[2Jnotes') {
  const shown: string[] = [];
  const sink = { write: (text: string) => shown.push(text), on: () => {} };
  const output = new Output({ stdout: sink, stderr: sink, json: false, quiet: false, color: false });
  const input = new PassThrough();
  const stop = new AbortController();
  const question = { title, options };
  return {
    input,
    stop,
    shown: () => shown.join(''),
    answer: askPermission(question, { output, input, signal: stop.signal }),
  };
}

test('a number at a terminal is the place of an option, also if another has it as its id', async () => {
  const [allow, reject] = TWO;
  const { input, answer } = asking([
    { ...allow, optionId: '2' },
    { ...reject, optionId: '1' },
  ]);
  input.write('2\n');
  expect(await answer).toBe('1');
});

test('a question is asked until the answer is valid', async () => {
  const { input, answer, shown } = asking();
  input.write('perhaps\nallow\n');
  expect(await answer).toBe('a');
  expect(shown()).toContain('The agent asks: write [U+001B · control character][2Jnotes');
  expect(shown()).toContain('U+001B can hide what stands before it.');
  expect(shown()).toContain('"perhaps" is not one of the answers.');
});

test('no line of a question looks like the choices', async () => {
  const { input, answer, shown } = asking(TWO, 'ls\n  1 Reject   2 Allow   (or allow, deny)\n');
  input.end();
  await answer;
  expect(shown().match(/^ {2}1 .*/gm)).toEqual(['  1 Allow   2 Reject   (or allow, deny)']);
});

test('the end of the input denies the question', async () => {
  const { input, answer } = asking();
  input.end();
  expect(await answer).toBe('r');
});

test('a question that was answered elsewhere is no longer asked', async () => {
  const { stop, answer } = asking();
  setTimeout(() => stop.abort(), 20);
  expect(await answer).toBeNull();
});
