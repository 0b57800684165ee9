import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { TestSandboxes } from '../../../test/contracts/agent-sandbox.ts';
import type { Entry } from './protocol.ts';
import { findEntry, isSessionId, readPosition, type SessionFile, tailOf } from './storage.ts';

const sandboxes = new TestSandboxes();
afterAll(() => sandboxes.dispose());

let dir: string;
let file: string;
let stored: SessionFile;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'throughline-storage-'));
  file = join(dir, 'one.jsonl');
  stored = { folder: await (await sandboxes.sandbox()).folder(dir), path: 'one.jsonl' };
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

test('the position is the number and the id of the last entry', async () => {
  expect(await readPosition(stored)).toBeNull();
  writeFileSync(file, '');
  expect(await readPosition(stored)).toBeNull();
  write(entry(1), entry(2), entry(3));
  expect(await readPosition(stored)).toBe('3:u3');
});

test('an entry larger than the first read is found', async () => {
  write(entry(1, 'a'.repeat(50_000)), entry(2, 'ü'.repeat(50_000)));
  expect(await readPosition(stored)).toBe('2:u2');
  expect((await findEntry(stored, 'u1'))?.n).toBe(1);
  expect(await findEntry(stored, 'u9')).toBeNull();
});

test('an incomplete last line and other text are not entries', async () => {
  write(entry(1), entry(2));
  appendFileSync(file, 'null\n42\n{}\n{"uuid":"u3","n":3,"text":"to');
  expect(await readPosition(stored)).toBe('2:u2');
  expect(await tailOf(stored, { prompt: 'u2', position: '1:u1' })).toEqual({ updates: [], position: '2:u2' });
});

const said = (n: number, parent: number): Entry => {
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `${n}` } } as const;
  return { uuid: `u${n}`, parent: `u${parent}`, n, role: 'agent', update, at: 0 };
};
const wordsOf = async (prompt: string | null, position: string | null) => {
  const tail = await tailOf(stored, { prompt, position });
  const words = tail?.updates.map((update) => 'content' in update && (update.content as { text: string }).text);
  return words && [...words, tail?.position];
};

test('the tail has the entries that descend from the prompt, and no others', async () => {
  write(entry(1), said(2, 1), entry(3), said(4, 3), said(5, 4));
  expect(await wordsOf('u3', '2:u2')).toEqual(['4', '5', '5:u5']);
  // It works without the position before the prompt.
  expect(await wordsOf('u3', null)).toEqual(['4', '5', '5:u5']);
  // Another client continued from the same entry, or after us: the position is not ours.
  write(entry(1), said(2, 1), { ...entry(3), parent: 'u2' }, { ...entry(4), parent: 'u2' }, said(5, 3), said(6, 4));
  expect(await wordsOf('u3', '2:u2')).toEqual(['5', null]);
  write(entry(1), said(2, 1), entry(3), said(4, 3));
  expect(await wordsOf('u1', null)).toEqual(['2', null]);
});

test('a prompt that never arrived has no tail; the position is the old one, or null when somebody else has used it', async () => {
  write(entry(1), said(2, 1));
  expect(await wordsOf('u3', '2:u2')).toEqual(['2:u2']);
  expect(await wordsOf('u3', '1:u1')).toEqual([null]);
  expect(await wordsOf(null, '1:u1')).toEqual([null]);
  writeFileSync(file, '');
  expect(await wordsOf('u3', null)).toEqual([null]);
  rmSync(file);
  expect(await tailOf(stored, { prompt: 'u3', position: null })).toBeNull();
});

test('reading the position takes no longer for a long session', async () => {
  const lines = Array.from({ length: 40_000 }, (_, at) => entry(at + 1, 'x'.repeat(200)));
  write(...lines);
  /** The shortest of a few, because other programs use the processor, too. */
  const timed = async (work: () => Promise<void>) => {
    let least = Number.POSITIVE_INFINITY;
    for (let n = 0; n < 5; n += 1) {
      const begun = performance.now();
      await work();
      least = Math.min(least, performance.now() - begun);
    }
    return least;
  };
  const position = await timed(async () => expect(await readPosition(stored)).toBe('40000:u40000'));
  const whole = await timed(async () => expect(await tailOf(stored, { prompt: 'u1', position: null })).not.toBeNull());
  expect(position).toBeLessThan(whole / 4);
});

test.each(['', '..', '../x', 'a/b', '.hidden', 'a\0', 'x'.repeat(200)])('%j is not a session id', (id) => {
  expect(isSessionId(id)).toBe(false);
});
