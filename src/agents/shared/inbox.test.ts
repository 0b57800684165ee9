import { expect, test } from 'vitest';
import { Inbox } from './inbox.ts';

async function all(inbox: Inbox<number>): Promise<number[]> {
  const values: number[] = [];
  for await (const value of inbox) values.push(value);
  return values;
}

test('values pushed before the close are delivered, later ones are dropped', async () => {
  const inbox = new Inbox<number>();
  inbox.push(1);
  inbox.close();
  inbox.push(2);
  expect(await all(inbox)).toEqual([1]);
});

test('a consumer that waits is woken by every value and by the close', async () => {
  const inbox = new Inbox<number>();
  const consumed = all(inbox);
  for (let n = 0; n < 5; n += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    inbox.push(n);
  }
  await new Promise((resolve) => setImmediate(resolve));
  inbox.close();
  expect(await consumed).toEqual([0, 1, 2, 3, 4]);
});

test('a producer waits for a slow consumer, and no longer once it is released', async () => {
  const inbox = new Inbox<number>();
  for (let n = 0; n < 1_000; n += 1) inbox.push(n);
  let waits = true;
  const ready = inbox.ready().then(() => {
    waits = false;
  });
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(waits).toBe(true);
  await inbox[Symbol.asyncIterator]().next();
  await ready;
  for (let n = 0; n < 2_000; n += 1) inbox.push(n);
  inbox.release();
  await inbox.ready();
});

test('after discard nothing is kept', async () => {
  const inbox = new Inbox<number>();
  inbox.push(1);
  inbox.discard();
  for (let n = 0; n < 5_000; n += 1) inbox.push(n);
  await inbox.ready();
  expect(await all(inbox)).toEqual([]);
});
