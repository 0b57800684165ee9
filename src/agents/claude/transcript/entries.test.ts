import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { blocksOf, EntryReader, type Line, parseEntry } from './entries.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

/** All that comes of these pieces. */
function read(pieces: readonly Uint8Array[], reader = new EntryReader()): { lines: Line[]; reader: EntryReader } {
  return { lines: pieces.flatMap((piece) => reader.push(piece)), reader };
}

describe('lines', () => {
  test('do not depend on how the bytes are split into chunks', () => {
    const text = '{"type":"user","text":"äöü 日本 𝒳"}\n\n{"type":"x","kept":{"a":[1]}}\nnot json\n[1]\n{"half":';
    const whole = read([bytes(text)]);
    expect(whole.lines.map(({ number, entry }) => [number, entry?.type ?? null])).toEqual([
      [1, 'user'],
      [3, 'x'],
      [4, null],
      [5, null],
    ]);
    fc.assert(
      fc.property(fc.array(fc.nat(bytes(text).length), { maxLength: 12 }), (cuts) => {
        const all = bytes(text);
        const at = [0, ...cuts.toSorted((a, b) => a - b), all.length];
        const pieces = at.slice(1).map((end, i) => all.subarray(at[i], end));
        expect(read(pieces).lines).toEqual(whole.lines);
      }),
    );
  });

  test('are counted, and the bytes after the last one as well', () => {
    const { reader } = read([bytes('{"type":"ä"}\n{"type":"b"}\n{"ty')]);
    expect([reader.pending, reader.lines]).toEqual([4, 2]);
  });

  test('without a newline do not count yet', () => {
    const reader = new EntryReader();
    expect(reader.push(bytes('{"type":"a"}'))).toEqual([]);
    expect(reader.push(bytes('\n'))).toMatchObject([{ number: 1, entry: { type: 'a' } }]);
  });

  test('that are too long are dropped while they come, and counted once, as corrupt', () => {
    const reader = new EntryReader(20);
    const found = Array.from({ length: 100 }, () => reader.push(bytes('0123456789'))).flat();
    expect(found).toEqual([{ number: 1, entry: null }]);
    expect(reader.push(bytes('\n{"type":"a"}\n'))).toMatchObject([{ number: 2, entry: { type: 'a' } }]);
  });
});

test('an entry keeps unknown fields', () => {
  expect(parseEntry('{"type":"user","newField":{"deep":1}}')).toEqual({ type: 'user', newField: { deep: 1 } });
  for (const none of ['null', '1', '"text"', '[]', '{}', '{"type":1}', '']) expect(parseEntry(none)).toBeNull();
});

test('the content of a message is read as blocks, also when it is a text', () => {
  expect(blocksOf({ content: 'text' })).toEqual([{ type: 'text', text: 'text' }]);
  expect(blocksOf({ content: [{ type: 'a' }, null, 'x', { no: 1 }] as never })).toEqual([{ type: 'a' }]);
  expect(blocksOf({ content: 7 as never })).toEqual([]);
  expect(blocksOf(undefined)).toEqual([]);
});
