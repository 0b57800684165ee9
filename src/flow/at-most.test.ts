import { expect, test } from 'vitest';
import { AtMost } from './at-most.ts';

const never = new AbortController().signal;

/** Work that ends when the test calls `end` or `fail`. */
function work(starts: AtMost, signal = never) {
  const end = Promise.withResolvers<void>();
  let began = false;
  const done = starts.run(signal, () => {
    began = true;
    return end.promise;
  });
  return { end: end.resolve, fail: end.reject, done, began: () => began };
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test('a limited number runs at a time; the next one starts in order, also after a failure', async () => {
  const starts = new AtMost({ most: 2, longestMs: 10_000 });
  const all = Array.from({ length: 4 }, () => work(starts));
  const begun = () => all.map(({ began }) => began());
  await nextTurn();
  expect(begun()).toEqual([true, true, false, false]);
  all[1]?.fail(new Error('it did not start'));
  await expect(all[1]?.done).rejects.toThrow('it did not start');
  await nextTurn();
  expect(begun()).toEqual([true, true, true, false]);
  for (const { end } of all) end();
  await Promise.all(all.map(({ done }) => done.catch(() => {})));
  expect(begun()).toEqual([true, true, true, true]);
  // None of them counts any more.
  const more = [work(starts), work(starts), work(starts)];
  await nextTurn();
  expect(more.map(({ began }) => began())).toEqual([true, true, false]);
});

test('work that takes too long continues, and no longer blocks the next', async () => {
  const starts = new AtMost({ most: 1, longestMs: 20 });
  const [slow, next] = [work(starts), work(starts)];
  await expect.poll(() => next.began()).toBe(true);
  next.end();
  await next.done;
  slow.end();
  await slow.done;
  const last = work(starts);
  await nextTurn();
  expect(last.began()).toBe(true);
});

test('work that is aborted while it waits starts at once, and does not count towards the limit', async () => {
  const starts = new AtMost({ most: 1, longestMs: 10_000 });
  const stop = new AbortController();
  const [first, stopped, third] = [work(starts), work(starts, stop.signal), work(starts)];
  await nextTurn();
  stop.abort();
  await nextTurn();
  expect([stopped.began(), third.began()]).toEqual([true, false]);
  stopped.end();
  await stopped.done;
  expect(third.began()).toBe(false);
  first.end();
  await expect.poll(() => third.began()).toBe(true);
});
