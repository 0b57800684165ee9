import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { askPermission } from './ask-permission.ts';
import { Output } from './output.ts';

const OPTIONS = [
  { optionId: 'a', name: 'Allow', kind: 'allow_once' },
  { optionId: 'r', name: 'Reject', kind: 'reject_once' },
] as const;

function asking() {
  const shown: string[] = [];
  const sink = { write: (text: string) => shown.push(text), on: () => {} };
  const output = new Output({ stdout: sink, stderr: sink, json: false, quiet: false, color: false });
  const input = new PassThrough();
  const stop = new AbortController();
  const question = { title: 'write \u001b[2Jnotes', options: OPTIONS };
  return {
    input,
    stop,
    shown: () => shown.join(''),
    answer: askPermission(question, { output, input, signal: stop.signal }),
  };
}

test('a question is asked until the answer is one', async () => {
  const { input, answer, shown } = asking();
  input.write('perhaps\nallow\n');
  expect(await answer).toBe('a');
  expect(shown()).toContain('The agent asks: write notes');
  expect(shown()).toContain('"perhaps" is not one of them.');
});

test('an input that ends is a no', async () => {
  const { input, answer } = asking();
  input.end();
  expect(await answer).toBe('r');
});

test('a question that was answered elsewhere is no longer asked', async () => {
  const { stop, answer } = asking();
  setTimeout(() => stop.abort(), 20);
  expect(await answer).toBeNull();
});
