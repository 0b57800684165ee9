import { appendFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { transcriptAt } from '../../../../test/contracts/transcript-file.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import { parseMemo, renderMemo, Sealer } from './seal.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder, 'file');
});

const LONG = Buffer.alloc(3 * 1024 * 1024 + 7, 'a line of a transcript\n');

async function sealed(...pieces: readonly (string | Buffer)[]) {
  const sealer = new Sealer(transcriptAt(path));
  let length = 0;
  for (const piece of pieces) {
    appendFileSync(path, piece);
    await sealer.extend(length, Buffer.from(piece));
    length += piece.length;
  }
  return sealer.seal ?? expect.unreachable();
}

test('the seal does not depend on how the file grew, and holds while lines are only added', async () => {
  const seal = await sealed('one\n', LONG, 'two\n');
  const { length } = readFileSync(path);
  const again = new Sealer(transcriptAt(path));
  await again.extend(length, Buffer.alloc(0));
  expect(again.seal).toEqual(seal);
  appendFileSync(path, 'more\n');
  const later = new Sealer(transcriptAt(path));
  expect(await later.holds(seal)).toBe(true);
  await later.extend(length, Buffer.from('more\n'));
  expect(await new Sealer(transcriptAt(path)).holds(later.seal ?? seal)).toBe(true);
});

test('a changed byte, a shorter file and a missing file break the seal', async () => {
  const seal = await sealed('one\n', LONG);
  const bytes = readFileSync(path);
  bytes[2_000_000] = 0;
  writeFileSync(path, bytes);
  expect(await new Sealer(transcriptAt(path)).holds(seal)).toBe(false);
  truncateSync(path, 100);
  expect(await new Sealer(transcriptAt(path)).holds(seal)).toBe(false);
  rmSync(path);
  expect(await new Sealer(transcriptAt(path)).holds(seal)).toBe(false);
});

const costUsd = 1.5;
const seal = { bytes: 12, sha256: 'abc' };

test.each([null, undefined, '', 'null', '{', '[]', '"x"', '{"costUsd":"1","bytes":"2"}'])(
  'an invalid memo is read as empty: %s',
  (memo) => {
    expect(parseMemo(memo)).toEqual({ costUsd: null, seal: null, compaction: null, chosenModel: false });
  },
);

test.each([
  { costUsd, seal, compaction: 'c', chosenModel: true },
  { costUsd, seal: null, compaction: null, chosenModel: false },
  { costUsd: null, seal, compaction: null, chosenModel: false },
  { costUsd: null, seal: null, compaction: 'c', chosenModel: false },
  { costUsd: null, seal: null, compaction: null, chosenModel: false },
])('a memo is read as it was written: %j', (memo) => {
  expect(parseMemo(renderMemo(memo))).toEqual(memo);
});
