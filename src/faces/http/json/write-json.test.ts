import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { writeJson } from './write-json.ts';

async function written(answer: object): Promise<unknown> {
  let isDone = false;
  const json = writeJson(answer, () => {
    isDone = true;
  });
  const text = typeof json === 'string' ? json : await new Response(json).text();
  expect(isDone).toBe(true);
  return JSON.parse(text);
}

test('an answer is the same as from JSON.stringify', async () => {
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.string(), fc.oneof(fc.jsonValue(), fc.constant(undefined))), async (answer) => {
      expect(await written(answer)).toEqual(JSON.parse(JSON.stringify(answer)));
    }),
  );
});

test('a long answer is written in chunks, complete and in order', async () => {
  const answer = {
    turns: Array.from({ length: 5_000 }, (_, n) => ({ n, reply: 'ü'.repeat(50) })),
    next: null,
    none: undefined,
  };
  expect(writeJson(answer, () => {})).toBeInstanceOf(ReadableStream);
  expect(await written(answer)).toEqual(JSON.parse(JSON.stringify(answer)));
});
