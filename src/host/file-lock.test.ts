import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { lockFile } from './file-lock.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = temporaryFolder();
  file = join(folder, 'lock');
});

/** Another process that holds the file until it is told to continue. */
async function holder(): Promise<ChildProcessWithoutNullStreams> {
  const module = new URL('file-lock.ts', import.meta.url).href;
  const script = `
    const { lockFile } = await import(${JSON.stringify(module)});
    globalThis.held = lockFile(${JSON.stringify(file)});
    console.log(globalThis.held === null ? 'refused' : 'held');
    process.stdin.once('data', () => globalThis.held.release()).resume();`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
  expect(String((await once(child.stdout, 'data'))[0]).trim()).toBe('held');
  return child;
}

test('only one can hold a lock, also within a process, and its file stays empty and private', () => {
  const first = lockFile(file);
  expect(first).not.toBeNull();
  expect([lockFile(file), lockFile(file)]).toEqual([null, null]);
  first?.release();
  const second = lockFile(file);
  expect(second).not.toBeNull();
  expect([readdirSync(folder), readFileSync(file, 'utf8')]).toEqual([['lock'], '']);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  second?.release();
});

test.each(['released', 'killed'])('a lock of another process is free as soon as it is %s', async (how) => {
  const child = await holder();
  expect(lockFile(file)).toBeNull();
  const exit = once(child, 'exit');
  if (how === 'killed') child.kill('SIGKILL');
  else child.stdin.end('continue');
  await exit;
  const held = lockFile(file);
  expect(held).not.toBeNull();
  held?.release();
});

test('another file in its place is not changed, and the error names it', () => {
  writeFileSync(file, 'x'.repeat(4_096));
  expect(() => lockFile(file)).toThrow(expect.objectContaining({ code: 'refused', message: `Cannot lock ${file}.` }));
  expect(readFileSync(file, 'utf8')).toBe('x'.repeat(4_096));
  const directory = join(folder, 'directory');
  mkdirSync(directory);
  expect(() => lockFile(directory)).toThrow(expect.objectContaining({ code: 'refused' }));
});
