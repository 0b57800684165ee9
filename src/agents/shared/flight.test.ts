import { expect, test } from 'vitest';
import type { AgentEvent } from '../../ports/agent.ts';
import { Flight, whyNotSent } from './flight.ts';

function flight(graceMs = 60_000) {
  const seen: string[] = [];
  const killed = Promise.withResolvers<void>();
  const made = new Flight({
    ask: () => seen.push('asked'),
    kill: () => {
      seen.push('killed');
      killed.resolve();
    },
    graceMs,
  });
  return { made, seen, killed: killed.promise };
}

async function all(events: AsyncIterable<AgentEvent>): Promise<AgentEvent[]> {
  const taken: AgentEvent[] = [];
  for await (const event of events) taken.push(event);
  return taken;
}

test('an abort asks the agent to stop, once; the agent decides the outcome', async () => {
  const { made, seen } = flight();
  const abort = new AbortController();
  const taken = all(made.deliver(abort.signal));
  abort.abort();
  made.stop();
  expect(seen).toEqual(['asked']);
  expect(made.stopped).toBe(true);
  made.end({ kind: 'completed' });
  expect(await taken).toEqual([{ type: 'ended', outcome: { kind: 'completed' } }]);
});

test('an agent that does not stop is killed, and one that stopped is not', async () => {
  const { made, seen, killed } = flight(1);
  made.stop();
  await killed;
  expect(seen).toEqual(['asked', 'killed']);
  const other = flight(1);
  other.made.stop();
  other.made.end({ kind: 'cancelled' });
  await killed.then(() => new Promise((resolve) => setTimeout(resolve, 20)));
  expect(other.seen).toEqual(['asked']);
});

test('a reader that leaves before the end stops the agent', async () => {
  const left = flight();
  left.made.events.push({ type: 'session', id: 'x' });
  for await (const _ of left.made.deliver(new AbortController().signal)) break;
  expect(left.seen).toEqual(['asked']);
  left.made.end({ kind: 'cancelled' });
  const whole = flight();
  whole.made.end({ kind: 'completed' });
  await all(whole.made.deliver(new AbortController().signal));
  whole.made.stop();
  expect(whole.seen).toEqual([]);
});

test('a turn is lost when the process ends, unless it was asked to stop', () => {
  const { made } = flight();
  expect(made.whenGone('it ended')).toEqual({ kind: 'lost', message: 'it ended' });
  made.stop();
  expect(made.whenGone('it ended')).toEqual({ kind: 'cancelled' });
  made.end({ kind: 'cancelled' });
});

test('the reason why a prompt is not sent is reported', () => {
  const { signal } = new AbortController();
  expect(whyNotSent(signal, false, true)).toBeNull();
  expect(whyNotSent(signal, true, true)).toMatchObject({ kind: 'failed', again: true });
  expect(whyNotSent(signal, false, false)).toMatchObject({ kind: 'failed', again: true });
  expect(whyNotSent(AbortSignal.abort(), false, true)).toEqual({ kind: 'cancelled' });
});

test('a turn ends once, and nothing comes after its end', async () => {
  const { made } = flight();
  made.end({ kind: 'completed' });
  made.events.push({ type: 'session', id: 'late' });
  made.end({ kind: 'cancelled' });
  expect(await all(made.deliver(new AbortController().signal))).toEqual([
    { type: 'ended', outcome: { kind: 'completed' } },
  ]);
});
