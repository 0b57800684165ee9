import { appendFileSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../../../../test/temporary-folder.ts';
import { addToHistory, historyFile, readHistory } from './history.ts';

let home: string;
beforeEach(() => {
  home = temporaryFolder();
});

test('prompts are kept per owner, in order, for this user alone', () => {
  const file = historyFile(home, 'Zoë/../x');
  expect(readHistory(file)).toEqual([]);
  addToHistory(file, 'one\ntwo');
  addToHistory(file, 'three');
  expect(readHistory(file)).toEqual(['one\ntwo', 'three']);
  expect(readHistory(historyFile(home, 'another'))).toEqual([]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(join(home, 'chat')).mode & 0o777).toBe(0o700);
});

test('the file stays small, and a damaged line is left out', () => {
  const file = historyFile(home, 'local');
  for (let n = 0; n < 1_100; n += 1) addToHistory(file, `prompt ${n}`);
  appendFileSync(file, '{"half\n');
  addToHistory(file, 'x'.repeat(100_000));
  expect(readHistory(file)).toHaveLength(500);
  expect(readHistory(file).at(-1)).toBe('prompt 1099');
  expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(501);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});
