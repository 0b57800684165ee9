import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'vitest';
import { FileWatch } from './file-watch.ts';

const LONG_MS = 60_000;
let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'throughline-file-watch-'));
  file = join(folder, 'file');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('reports that a file has changed, also when nobody was waiting', async () => {
  writeFileSync(file, 'a');
  const watch = new FileWatch(file);
  const waiting = watch.next(LONG_MS);
  appendFileSync(file, 'b');
  await waiting;
  appendFileSync(file, 'c');
  await new Promise(setImmediate);
  await watch.next(LONG_MS);
  watch.close();
});

test('a file that is created later is watched from the next wait on', async () => {
  const watch = new FileWatch(file);
  await watch.next(1);
  writeFileSync(file, 'a');
  const waiting = watch.next(LONG_MS);
  appendFileSync(file, 'b');
  await waiting;
  watch.close();
});

test('a file that is replaced is watched again', async () => {
  writeFileSync(file, 'a');
  const watch = new FileWatch(file);
  const gone = watch.next(LONG_MS);
  rmSync(file);
  await gone;
  writeFileSync(file, 'other');
  const waiting = watch.next(LONG_MS);
  appendFileSync(file, 'b');
  await waiting;
  watch.close();
});

test('a closed watch does not wait', async () => {
  writeFileSync(file, 'a');
  const watch = new FileWatch(file);
  const waiting = watch.next(LONG_MS);
  watch.close();
  await waiting;
  await watch.next(LONG_MS);
});
