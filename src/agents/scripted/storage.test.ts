import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Entry } from './protocol.ts';
import { entriesAfter, findEntry, readPosition, storageFile } from './storage.ts';

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'throughline-storage-'));
  file = join(dir, 'one.jsonl');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const entry = (n: number, text = 'x'): Entry => ({
  uuid: `u${n}`,
  parent: n === 1 ? null : `u${n - 1}`,
  n,
  role: 'user',
  text,
  at: 0,
});
const write = (...entries: Entry[]) => writeFileSync(file, entries.map((one) => `${JSON.stringify(one)}\n`).join(''));

test('the position is the number and the name of the last entry', () => {
  expect(readPosition(file)).toBeNull();
  writeFileSync(file, '');
  expect(readPosition(file)).toBeNull();
  write(entry(1), entry(2), entry(3));
  expect(readPosition(file)).toBe('3:u3');
});

test('an entry larger than what is read at first is found', () => {
  write(entry(1, 'a'.repeat(50_000)), entry(2, 'ü'.repeat(50_000)));
  expect(readPosition(file)).toBe('2:u2');
  expect(findEntry(file, 'u1')?.n).toBe(1);
  expect(findEntry(file, 'u9')).toBeNull();
});

test('a torn last line and noise are no entries', () => {
  write(entry(1), entry(2));
  appendFileSync(file, 'null\n42\n{}\n{"uuid":"u3","n":3,"text":"to');
  expect(readPosition(file)).toBe('2:u2');
  expect(entriesAfter(file, '1:u1')?.map(({ uuid }) => uuid)).toEqual(['u2']);
});

test('what comes after a position, and nothing when that position is not there', () => {
  write(entry(1), entry(2), entry(3));
  expect(entriesAfter(file, '1:u1')?.map(({ uuid }) => uuid)).toEqual(['u2', 'u3']);
  expect(entriesAfter(file, '3:u3')).toEqual([]);
  expect(entriesAfter(file, null)).toHaveLength(3);
  expect(entriesAfter(file, '1:u2')).toBeNull();
  expect(entriesAfter(join(dir, 'other.jsonl'), null)).toBeNull();
});

test('reading the position of a long session costs no more than that of a short one', () => {
  const lines = Array.from({ length: 40_000 }, (_, at) => entry(at + 1, 'x'.repeat(200)));
  write(...lines);
  const timed = (work: () => void) => {
    const begun = performance.now();
    for (let n = 0; n < 20; n += 1) work();
    return performance.now() - begun;
  };
  const position = timed(() => expect(readPosition(file)).toBe('40000:u40000'));
  const whole = timed(() => expect(entriesAfter(file, null)).toHaveLength(40_000));
  expect(position).toBeLessThan(whole / 4);
});

test.each(['', '..', '../x', 'a/b', '.hidden', 'a\0', 'x'.repeat(200)])('%j is no session id', (id) => {
  expect(storageFile(dir, id)).toBeNull();
});
