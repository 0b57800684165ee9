import { expect, test } from 'vitest';
import type { AgentEvent } from '../../ports/agent.ts';
import { EventQueue } from './event-queue.ts';

const event = (n: number): AgentEvent => ({ type: 'session', id: String(n) });

async function all(queue: EventQueue): Promise<AgentEvent[]> {
  const events: AgentEvent[] = [];
  for await (const one of queue.drain()) events.push(one);
  return events;
}

test('nothing comes after the end, and there is one end', async () => {
  const queue = new EventQueue();
  queue.push(event(1));
  queue.end({ kind: 'completed' });
  queue.push(event(2));
  queue.end({ kind: 'cancelled' });
  expect(await all(queue)).toEqual([event(1), { type: 'ended', outcome: { kind: 'completed' } }]);
});

test('a consumer that waits is woken', async () => {
  const queue = new EventQueue();
  const consumed = all(queue);
  for (let n = 0; n < 5; n += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    queue.push(event(n));
  }
  queue.end({ kind: 'completed' });
  expect(await consumed).toHaveLength(6);
});

test('a producer waits for a slow consumer, and no longer once it is released', async () => {
  const queue = new EventQueue();
  for (let n = 0; n < 1_000; n += 1) queue.push(event(n));
  let waits = true;
  const room = queue.room().then(() => {
    waits = false;
  });
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(waits).toBe(true);
  await queue.drain().next();
  await room;
  for (let n = 0; n < 2_000; n += 1) queue.push(event(n));
  queue.release();
  await queue.room();
});

test('what nobody wants is not kept', async () => {
  const queue = new EventQueue();
  queue.push(event(1));
  queue.abandon();
  for (let n = 0; n < 5_000; n += 1) queue.push(event(n));
  await queue.room();
});
