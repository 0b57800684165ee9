import { expect, test } from 'vitest';
import { LineReader } from './lines.ts';

function reader(limit?: number) {
  const lines: string[] = [];
  let tooLong = 0;
  const onTooLong = () => {
    tooLong += 1;
  };
  const reading = new LineReader((line) => lines.push(line), onTooLong, limit);
  return { lines, tooLong: () => tooLong, push: (text: string) => reading.push(Buffer.from(text)), reading };
}

test('lines come out whole, however the bytes are cut, and the last one without its newline', () => {
  const { lines, reading } = reader();
  for (const byte of Buffer.from('one\nzwei ü\n\nlast')) reading.push(Uint8Array.of(byte));
  expect(lines).toEqual(['one', 'zwei ü', '']);
  reading.end();
  expect(lines).toEqual(['one', 'zwei ü', '', 'last']);
});

test('a line beyond the limit is told once, and nothing comes after it', () => {
  const { lines, push, tooLong, reading } = reader(4);
  push('abcd\nabcde');
  push('fgh\nx\n');
  reading.end();
  expect(lines).toEqual(['abcd']);
  expect(tooLong()).toBe(1);
});
