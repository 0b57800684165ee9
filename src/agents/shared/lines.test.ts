import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineReader } from './lines.ts';

function read(chunks: readonly Uint8Array[], limit?: number): { lines: string[]; dropped: number } {
  const lines: string[] = [];
  let dropped = 0;
  const onTooLong = () => {
    dropped += 1;
  };
  const reader = new LineReader((line) => lines.push(line), onTooLong, limit);
  for (const chunk of chunks) reader.push(chunk);
  reader.end();
  return { lines, dropped };
}

test('the lines do not depend on how the bytes are split into chunks', () => {
  const cut = fc.tuple(fc.array(fc.string({ unit: 'binary' })), fc.array(fc.nat({ max: 40 }), { minLength: 1 }));
  fc.assert(
    fc.property(cut, ([texts, sizes]) => {
      const lines = texts.map((text) => text.replaceAll('\n', ''));
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
      const chunks: Uint8Array[] = [];
      for (let at = 0, n = 0; at < bytes.length; n += 1) {
        const size = (sizes[n % sizes.length] ?? 0) + 1;
        chunks.push(bytes.subarray(at, at + size));
        at += size;
      }
      expect(read(chunks).lines).toEqual(lines.map((line) => Buffer.from(line).toString()));
    }),
  );
});

test('the last line needs no newline, and there is no empty line after the last newline', () => {
  expect(read([Buffer.from('one\nla'), Buffer.from('st')]).lines).toEqual(['one', 'last']);
  expect(read([Buffer.from('one\n')]).lines).toEqual(['one']);
});

test('a line over the limit is dropped and reported once, and the next one is read', () => {
  const chunks = ['short\n', 'x'.repeat(60), 'x'.repeat(60), 'x\nafter\n'].map((text) => Buffer.from(text));
  expect(read(chunks, 100)).toEqual({ lines: ['short', 'after'], dropped: 1 });
  expect(read([Buffer.from(`${'x'.repeat(100)}\n`)], 100)).toEqual({ lines: ['x'.repeat(100)], dropped: 0 });
});

test('a buffer may be used again while its last line is incomplete', () => {
  const lines: string[] = [];
  const reader = new LineReader(
    (line) => lines.push(line),
    () => {},
  );
  const buffer = Buffer.from('one\nha');
  reader.push(buffer);
  expect(reader.pending).toBe(2);
  buffer.fill(0);
  reader.push(Buffer.from('lf\n'));
  expect(lines).toEqual(['one', 'half']);
  expect(reader.pending).toBe(0);
});

test('a line that never ends uses no memory', async () => {
  const chunk = Buffer.alloc(2 ** 20, 'x');
  let dropped = 0;
  const onTooLong = () => {
    dropped += 1;
  };
  const reader = new LineReader(() => {}, onTooLong, 2 ** 22);
  const before = process.memoryUsage().arrayBuffers;
  for (let n = 0; n < 128; n += 1) reader.push(Buffer.from(chunk));
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // Collected memory is returned to the system a little later, in the background.
  const held = () => {
    collect();
    return process.memoryUsage().arrayBuffers - before;
  };
  await expect.poll(held).toBeLessThan(16 * 2 ** 20);
  reader.push(Buffer.from('\n'));
  expect(dropped).toBe(1);
});
