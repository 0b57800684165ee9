import { expect, test } from 'vitest';
import { StderrTail } from './stderr-tail.ts';

async function tailOf(...chunks: string[]): Promise<string> {
  const tail = new StderrTail();
  await tail.read(
    (async function* () {
      for (const chunk of chunks) yield Buffer.from(chunk);
    })(),
  );
  return tail.text;
}

test('only the last of it is kept', async () => {
  const text = await tailOf(...Array.from({ length: 100 }, (_, n) => `${n} ${'x'.repeat(1_000)}\n`), 'the end');
  expect(text.length).toBeLessThanOrEqual(4_096);
  expect(text.endsWith('the end')).toBe(true);
});

test('nothing in it can control a terminal', async () => {
  const text = await tailOf('a \u001b[31mloud\u001b[0m\u001b]0;title\u0007 com\u009bplaint\u0000\r\n\tand more');
  expect(text).toBe('a loud]0;title complaint\n\tand more');
});

test('a broken pipe is the end of it', async () => {
  const tail = new StderrTail();
  await tail.read(
    (async function* () {
      yield Buffer.from('before');
      throw new Error('broken');
    })(),
  );
  expect(tail.text).toBe('before');
});
