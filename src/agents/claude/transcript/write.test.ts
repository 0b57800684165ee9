import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { storageAt, transcriptAt } from '../../../../test/contracts/transcript-file.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import { probeWritable, putTranscript } from './write.ts';

let scratch = '';
let dir = '';
let file = '';
beforeEach(() => {
  scratch = temporaryFolder();
  dir = join(scratch, 'projects', '-work');
  file = join(dir, 'id.jsonl');
});

const put = (content: string | Uint8Array) => putTranscript(transcriptAt(file, scratch), content);
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

describe('writing a transcript', () => {
  test('creates directory and file for their owner only, and leaves nothing else behind', async () => {
    expect(await put(Buffer.from('ä\nb\n'))).toEqual({ result: 'written', detail: file });
    expect(readFileSync(file, 'utf8')).toBe('ä\nb\n');
    expect([mode(dir), mode(file)]).toEqual(['700', '600']);
    expect(readdirSync(dir)).toEqual(['id.jsonl']);
  });

  test('never replaces another file, and recognizes the same content', async () => {
    const long = Array.from({ length: 60_000 }, (_, i) => `line ${i}\n`).join('');
    await put(long);
    const { mtimeMs } = statSync(file);
    expect(await put(long)).toMatchObject({ result: 'same' });
    expect(statSync(file).mtimeMs).toBe(mtimeMs);
    const changed = `${long.slice(0, -2)}x\n`;
    expect(await put(changed)).toMatchObject({ result: 'exists' });
    expect(await put('short\n')).toMatchObject({ result: 'exists' });
    expect(readFileSync(file, 'utf8')).toBe(long);
    expect(readdirSync(dir)).toEqual(['id.jsonl']);
  });

  test('writes one of two at the same time', async () => {
    const all = await Promise.all(['a\n', 'b\n', 'c\n', 'd\n'].map((text) => put(text)));
    expect(all.map(({ result }) => result).toSorted()).toEqual(['exists', 'exists', 'exists', 'written']);
    expect(readdirSync(dir)).toEqual(['id.jsonl']);
  });

  test('refuses links: the file, its directory, the directory above', async () => {
    const outside = join(scratch, 'outside');
    mkdirSync(join(outside, '-work'), { recursive: true });
    writeFileSync(join(outside, 'target'), 'keep\n');
    mkdirSync(dir, { recursive: true });
    symlinkSync(join(outside, 'target'), file);
    expect(await put('keep\n')).toMatchObject({ result: 'failed', detail: expect.stringContaining('link') });
    rmSync(file);
    symlinkSync(join(outside, 'nowhere'), file);
    expect(await put('x\n')).toMatchObject({ result: 'failed', detail: expect.stringContaining('link') });
    rmSync(dir, { recursive: true });
    symlinkSync(join(outside, '-work'), dir);
    expect(await put('x\n')).toMatchObject({ result: 'failed', detail: expect.stringContaining('link') });
    rmSync(join(scratch, 'projects'), { recursive: true });
    symlinkSync(outside, join(scratch, 'projects'));
    expect(await put('x\n')).toMatchObject({ result: 'failed', detail: expect.stringContaining('link') });
    expect(readdirSync(outside).toSorted()).toEqual(['-work', 'target']);
    expect(readdirSync(join(outside, '-work'))).toEqual([]);
  });

  test('is not blocked by a pipe, a directory or anything else in its place', async () => {
    mkdirSync(dir, { recursive: true });
    execFileSync('mkfifo', [file]);
    expect(await put('x\n')).toMatchObject({ result: 'failed' });
    rmSync(file);
    mkdirSync(file);
    expect(await put('x\n')).toMatchObject({ result: 'failed' });
  });

  test('reports that it cannot write, and leaves no half of a file', async () => {
    writeFileSync(join(scratch, 'projects'), 'a file where a directory should be');
    expect(await put('x\n')).toMatchObject({ result: 'failed' });
    expect(readdirSync(scratch)).toEqual(['projects']);
  });
});

describe('probing', () => {
  test('creates a missing directory, reports that it is writable, and leaves nothing in it', async () => {
    expect(await probeWritable(storageAt(dir, scratch))).toBeNull();
    expect(readdirSync(dir)).toEqual([]);
    expect(mode(dir)).toBe('700');
  });

  test('reports why a directory is not writable', async () => {
    writeFileSync(join(scratch, 'projects'), '');
    expect(await probeWritable(storageAt(dir, scratch))).toMatch(
      /^cannot write to \S+, where Claude keeps its sessions \(\S+ is not a folder\)$/,
    );
  });

  test('reports a read-only directory', async (context) => {
    mkdirSync(dir, { recursive: true });
    chmodSync(dir, 0o500);
    if (process.getuid?.() === 0) {
      // For root, only some folders of the system are read-only.
      if (!existsSync('/sys/kernel')) context.skip('root can write everywhere, and there is no /sys');
      expect(await probeWritable(storageAt('/sys/kernel'))).toContain('cannot write to');
    } else expect(await probeWritable(storageAt(dir, scratch))).toContain('EACCES');
  });
});
