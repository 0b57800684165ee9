import { expect, test } from 'vitest';
import { inPages } from './pages.ts';

const VALUES = [1, 2, 3, 4, 5, 6, 7];

/** Pages of any length up to the requested one. */
function reader(...lengths: number[]) {
  const wanted: number[] = [];
  const read = async (last = 0, most = 0) => {
    wanted.push(most);
    return VALUES.slice(last, last + Math.min(lengths.shift() ?? 9, most));
  };
  return { read, wanted };
}

test('pages are read until one is empty, also after short ones', async () => {
  const { read } = reader(3, 1, 2);
  expect(await Array.fromAsync(inPages(read))).toEqual(VALUES);
  expect(await Array.fromAsync(inPages(async () => []))).toEqual([]);
});

test('a page is never requested with more values than are still wanted', async () => {
  const { read, wanted } = reader(2, 1);
  expect(await Array.fromAsync(inPages(read, 5))).toEqual([1, 2, 3, 4, 5]);
  expect(wanted).toEqual([5, 3, 2]);
});

test('no further page is read when the reader stops early', async () => {
  const { read, wanted } = reader(2, 2);
  for await (const value of inPages(read)) if (value === 2) break;
  expect(wanted).toHaveLength(1);
});
