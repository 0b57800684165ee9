import { expect, test } from 'vitest';
import { HeavyCalls } from './heavy-calls.ts';

const HERE = new AbortController().signal;
const four = (calls: HeavyCalls, owner = 'ann') =>
  Promise.all(Array.from({ length: 4 }, () => calls.come(owner, HERE)));

test('a fifth call of an owner waits until one has ended; those of others do not wait', async () => {
  const calls = new HeavyCalls('conversation', 60_000);
  const [first] = await four(calls);
  await four(calls, 'bob');
  const order: string[] = [];
  const fifth = calls.come('ann', HERE).then(() => order.push('came'));
  await new Promise(setImmediate);
  order.push('left');
  first?.();
  first?.(); // a second call frees no second slot
  await fifth;
  expect(order).toEqual(['left', 'came']);
  const refused = calls.come('ann', AbortSignal.abort());
  await expect(refused).rejects.toMatchObject({ code: 'too_many' });
});

test('a call that waits too long is refused, and its slot stays usable', async () => {
  const calls = new HeavyCalls('conversation', 1);
  const leave = await four(calls);
  await expect(calls.come('ann', HERE)).rejects.toMatchObject({ code: 'too_many', hint: expect.any(String) });
  for (const one of leave) one();
  await four(calls);
});

test('a caller that disconnects leaves the queue, and no more than 32 calls wait', async () => {
  const calls = new HeavyCalls('conversation', 60_000);
  const [first] = await four(calls);
  const gone = new AbortController();
  const waits = Array.from({ length: 32 }, () => calls.come('ann', gone.signal).catch(() => 'refused'));
  await expect(calls.come('ann', HERE)).rejects.toMatchObject({ code: 'too_many' });
  gone.abort();
  expect(new Set(await Promise.all(waits))).toEqual(new Set(['refused']));
  first?.();
  await calls.come('ann', HERE);
});
