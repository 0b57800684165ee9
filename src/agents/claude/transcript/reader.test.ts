import { appendFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { transcriptAt } from '../../../../test/contracts/transcript-file.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import type { Entry } from './entries.ts';
import { entriesFrom } from './position.ts';
import { TranscriptReader } from './reader.ts';

let scratch = '';
let file = '';
beforeEach(() => {
  scratch = temporaryFolder();
  file = join(scratch, 'session.jsonl');
});

const entry = (n: number, parent = n - 1, padding = ''): Entry => ({
  type: n % 2 === 1 ? 'user' : 'assistant',
  uuid: `u${n}`,
  parentUuid: parent === 0 ? null : `u${parent}`,
  timestamp: new Date(1_700_000_000_000 + n).toISOString(),
  message: { role: n % 2 === 1 ? 'user' : 'assistant', id: `msg_${n}`, content: `entry ${n} ${padding}` },
});
const line = (one: Entry) => `${JSON.stringify(one)}\n`;
const lines = (from: number, to: number) => {
  return Array.from({ length: to - from + 1 }, (_, i) => line(entry(from + i))).join('');
};
/** The uuids of what was appended, a list for each piece. */
async function grown(reader: TranscriptReader): Promise<(string | undefined)[][]> {
  const all: (string | undefined)[][] = [];
  for await (const entries of reader.read()) all.push(entries.map(({ uuid }) => uuid));
  return all;
}
const uuids = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `u${from + i}`);

describe('a reader', () => {
  test('yields what was appended, and knows the position', async () => {
    const reader = new TranscriptReader(transcriptAt(file));
    expect(await grown(reader)).toEqual([]);
    expect([reader.present, reader.position]).toEqual([false, null]);
    for (let n = 1; n <= 9; n += 2) {
      appendFileSync(file, lines(n, n + 1));
      expect(await grown(reader)).toEqual([uuids(n, n + 1)]);
      expect(reader.position).toBe(`${n + 1}:u${n + 1}`);
      expect((await new TranscriptReader(transcriptAt(file)).skip()).position).toBe(reader.position);
    }
    expect(await grown(reader)).toEqual([]);
  });

  test('waits for the rest of a line', async () => {
    const text = line(entry(3));
    writeFileSync(file, lines(1, 2) + text.slice(0, 30));
    const reader = await new TranscriptReader(transcriptAt(file)).skip();
    expect(reader.position).toBe('2:u2');
    expect(reader.chain.defects).toEqual([{ kind: 'torn_tail', line: 3, uuid: null }]);
    expect(await grown(reader)).toEqual([]);
    appendFileSync(file, text.slice(30));
    expect(await grown(reader)).toEqual([['u3']]);
    expect(reader.chain).toMatchObject({ count: 3, defects: [] });
  });

  test('reads only what is new, however long the history is', async () => {
    writeFileSync(file, lines(1, 20_000));
    const reader = await new TranscriptReader(transcriptAt(file)).skip();
    for (let n = 20_001; n < 20_021; n += 1) {
      appendFileSync(file, lines(n, n));
      expect(await grown(reader)).toEqual([[`u${n}`]]);
      expect(reader.position).toBe(`${n}:u${n}`);
    }
  });

  test('follows an entry that leads to an old one', async () => {
    writeFileSync(file, lines(1, 50));
    const reader = await new TranscriptReader(transcriptAt(file)).skip();
    expect(reader.position).toBe('50:u50');
    appendFileSync(file, line(entry(51, 10)));
    expect(await grown(reader)).toEqual([['u51']]);
    expect(reader.chain).toMatchObject({ count: 11, leaf: 'u51', defects: [] });
    appendFileSync(file, line(entry(52)));
    await reader.skip();
    expect(reader.position).toBe('12:u52');
  });

  test('starts again when the file was replaced, cut, rewritten or removed', async () => {
    writeFileSync(file, lines(1, 6));
    const reader = await new TranscriptReader(transcriptAt(file)).skip();
    const other = join(scratch, 'other');
    writeFileSync(other, lines(1, 8));
    renameSync(other, file);
    expect(await grown(reader)).toEqual([uuids(1, 8)]);
    expect(reader.position).toBe('8:u8');

    truncateSync(file, lines(1, 2).length);
    expect(await grown(reader)).toEqual([uuids(1, 2)]);
    expect(reader.position).toBe('2:u2');

    writeFileSync(file, line(entry(1, 0, 'another')) + lines(2, 3));
    expect(await grown(reader)).toEqual([uuids(1, 3)]);
    expect(reader.position).toBe('3:u3');

    rmSync(file);
    expect(await grown(reader)).toEqual([]);
    expect([reader.present, reader.position]).toEqual([false, null]);
  });

  test('reads a large file in pieces, and a line that is longer than a piece', async () => {
    const long = 'x'.repeat(300_000);
    writeFileSync(file, '');
    for (let n = 1; n <= 12; n += 1) appendFileSync(file, line(entry(n, n - 1, long)));
    appendFileSync(file, line(entry(13, 12, 'y'.repeat(3_000_000))));
    const reader = new TranscriptReader(transcriptAt(file));
    const pieces = await grown(reader);
    expect(pieces.length).toBeGreaterThan(3);
    expect(pieces.flat()).toEqual(uuids(1, 13));
    expect(reader.chain).toMatchObject({ count: 13, defects: [] });
    appendFileSync(file, line(entry(14, 13, 'z'.repeat(3_000_000))).slice(0, 2 ** 20));
    expect((await grown(reader)).flat()).toEqual([]);
    expect(reader.chain.defects).toEqual([{ kind: 'torn_tail', line: 14, uuid: null }]);
  });
});

describe('a session that is not open', () => {
  test('has no position when there is no file, a whole one, or a damaged one', async () => {
    const read = async (path = file) => {
      const { present, position, chain } = await new TranscriptReader(transcriptAt(path)).skip();
      return [present, position, chain.root];
    };
    expect(await read()).toEqual([false, null, null]);
    writeFileSync(file, lines(1, 4));
    expect(await read()).toEqual([true, '4:u4', 'start']);
    writeFileSync(file, `${lines(1, 2)}broken\n${lines(4, 4)}`);
    expect(await read()).toEqual([true, '1:u4', null]);
    writeFileSync(file, '');
    expect(await read()).toEqual([true, null, null]);
    // A directory is not a transcript either.
    expect(await read(scratch)).toEqual([false, null, null]);
  });

  test('has the entries that follow from a prompt, and nothing before or beside it', async () => {
    writeFileSync(file, lines(1, 6));
    const from = async (prompt: string | null, position: string | null) => {
      const found = await entriesFrom(transcriptAt(file), { prompt, position });
      return found && [...found.entries.map(({ uuid }) => uuid), found.position];
    };
    expect(await from('u5', '4:u4')).toEqual(['u6', '6:u6']);
    expect(await from('u6', '5:u5')).toEqual(['6:u6']);
    // It never arrived: nothing has changed, or only another client has written.
    expect(await from('nobody', '6:u6')).toEqual(['6:u6']);
    expect(await from('nobody', '4:u4')).toEqual(['4:u4']);
    expect(await from(null, null)).toEqual([null]);
    const theirs = { type: 'user', uuid: 'theirs', parentUuid: 'u3', message: { role: 'user', content: 'Theirs.' } };
    for (const parentUuid of ['u3', 'u6']) {
      writeFileSync(file, lines(1, 6) + line({ ...theirs, parentUuid }) + line(entry(8, 0)));
      expect(await from('u5', '4:u4')).toEqual(['u6', '6:u6']);
    }
    // Rewound for a prompt that never came: the failed one is the last, until somebody else sends one.
    const rewound = line({ type: 'last-prompt', leafUuid: 'u4' });
    writeFileSync(file, lines(1, 6) + rewound);
    expect(await from('nobody', '4:u4')).toEqual(['6:u6']);
    expect(await from('nobody', '3:u3')).toEqual(['3:u3']);
    writeFileSync(file, lines(1, 6) + rewound + line({ ...theirs, parentUuid: 'u6' }));
    expect(await from('nobody', '4:u4')).toEqual(['4:u4']);
    // Nothing was sent: Claude or another client wrote the entries.
    writeFileSync(file, lines(1, 6));
    expect(await from(null, '5:u5')).toEqual(['u6', '6:u6']);
    expect(await from(null, '4:u4')).toEqual(['4:u4']);
    rmSync(file);
    expect(await from('u4', null)).toBeNull();
  });
});
