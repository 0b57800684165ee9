import { expect, test, vi } from 'vitest';
import { BenchHome } from '../../../bench/support/bench-home.ts';
import { inProcessAgent, said } from '../../../bench/support/in-process-agent.ts';
import { TurnWatch } from '../../../bench/support/turn-watch.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { keptWarm } from '../support/kept-warm.ts';

// These tests count commits and reads: unlike times, their number does not depend on how busy the machine is.

test('a turn in a warm session needs three commits until its first update is read, and a fourth to end', async () => {
  await using home = new BenchHome();
  const { engine, queue, parts } = await home.open({ engine: { leaseMs: 600_000 } });
  const { id } = await engine.ensure({ key: 'chat' });
  const watch = new TurnWatch(engine, id, 0);
  const commits: [number, number][] = [];
  // A batch that takes too long is split, as on a busy machine. With these clocks a turn takes no time, and begins a second after the last.
  const [time, monotonic] = [performance.now(), systemClock.monotonic()];
  using now = vi.spyOn(performance, 'now');
  using clock = vi.spyOn(systemClock, 'monotonic');
  for (let i = 0; i < 20; i += 1) {
    now.mockReturnValue(time + i * 1_000);
    clock.mockReturnValue(monotonic + i * 1_000);
    const warm = keptWarm(parts.store);
    const before = queue.commits;
    const { turn } = await engine.submit(id, '/say Hello.');
    await watch.first(turn.id);
    const toFirst = queue.commits - before;
    await watch.ended(turn.id);
    commits.push([toFirst, queue.commits - before]);
    await warm;
  }
  // Not the first turn: its conversation was claimed, and its session opened.
  expect(commits.slice(1)).toEqual(Array(19).fill([3, 4]));
  await watch.stop();
});

test('an update and the end of its turn that come at the same moment are one commit, and an unchanged receipt is stored once', async () => {
  await using home = new BenchHome();
  const agent = inProcessAgent(() => [said('Hello.')]);
  const { engine, queue, parts } = await home.open({ agent, engine: { leaseMs: 600_000 } });
  const { id } = await engine.ensure({ key: 'chat' });
  const watch = new TurnWatch(engine, id, 0);
  const warm = keptWarm(parts.store);
  await watch.ended((await engine.submit(id, 'One.')).turn.id);
  await warm;
  const commits = queue.commits;
  const { turn, seq } = await engine.submit(id, 'Two.');
  await watch.ended(turn.id);
  const added = await parts.store.events('local', id, { after: seq - 1, limit: 100 });
  expect(added.map(({ kind }) => kind)).toEqual([
    ...['turn.queued', 'turn.started', 'restore.receipt', 'turn.sent', 'turn.update', 'session.changed', 'turn.ended'],
  ]);
  expect(queue.commits - commits).toBe(3);
  await watch.stop();
});

test('while the next turn of a conversation waits for a slot, the store is not read for it', async () => {
  await using home = new BenchHome();
  const mayAnswer = Promise.withResolvers<void>();
  const agent = inProcessAgent(async function* () {
    await mayAnswer.promise;
    yield said('Hello.');
  });
  const { engine, parts } = await home.open({ agent, engine: { maxRunning: 1, claims: 'all', pollMs: 600_000 } });
  const ids = [(await engine.ensure({ key: 'a' })).id, (await engine.ensure({ key: 'b' })).id] as const;
  const watches = ids.map((id) => new TurnWatch(engine, id, 0));
  const lastTurns: string[] = [];
  for (const n of [1, 2, 3, 4]) {
    for (const [i, id] of ids.entries()) lastTurns[i] = (await engine.submit(id, `Prompt ${n}.`)).turn.id;
  }
  using standings = vi.spyOn(parts.store, 'standings');
  using summaries = vi.spyOn(parts.store, 'summary');
  mayAnswer.resolve();
  for (const [i, watch] of watches.entries()) await watch.ended(lastTurns[i] as string);
  // The turns that were submitted while the first one ran were announced, and only that causes a read.
  expect(standings.mock.calls.length).toBeLessThanOrEqual(2);
  expect(summaries).not.toHaveBeenCalled();
  for (const watch of watches) await watch.stop();
});

test('a follower reads at most once for each commit', async () => {
  await using home = new BenchHome();
  const { engine, parts } = await home.open({ engine: { pollMs: 600_000 } });
  const { id } = await engine.ensure({ key: 'chat' });
  let bells = 0;
  parts.store.listen(() => {
    bells += 1;
  });
  using reads = vi.spyOn(parts.store, 'events');
  const watch = new TurnWatch(engine, id, 0);
  for (let i = 0; i < 10; i += 1) await watch.ended((await engine.submit(id, '/say Hello.')).turn.id);
  expect(reads.mock.calls.length).toBeGreaterThan(10);
  expect(reads.mock.calls.length).toBeLessThanOrEqual(bells + 1);
  await watch.stop();
});

test('a turn that is refused while its session is warm leaves the session as it was', async () => {
  await using home = new BenchHome();
  const { engine } = await home.open();
  const { id } = await engine.ensure({ key: 'chat' });
  const watch = new TurnWatch(engine, id, 0);
  const first = await engine.submit(id, 'Hello.', { requestId: 'r1' });
  await watch.ended(first.turn.id);
  await expect(engine.submit(id, 'Something else.', { requestId: 'r1' })).rejects.toMatchObject({ code: 'conflict' });
  const again = await engine.submit(id, 'Hello.', { requestId: 'r1' });
  expect(again).toMatchObject({ duplicate: true, turn: { id: first.turn.id } });
  const second = await engine.submit(id, 'Hello again.');
  await watch.ended(second.turn.id);
  expect((await engine.answerOf(second.turn.id)).receipt?.rung).toBe('live');
  await watch.stop();
});
