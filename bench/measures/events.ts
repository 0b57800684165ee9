import type { Update } from '../../src/core/turn/update.ts';
import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { inProcessAgent } from '../support/in-process-agent.ts';
import { TurnWatch } from '../support/turn-watch.ts';

/** A plan, because chunks of text would be merged: each of these updates becomes one event. About 200 bytes. */
const UPDATE: Update = {
  sessionUpdate: 'plan',
  entries: [{ content: 'Look at what is there, then change as little as possible. '.repeat(2), status: 'pending' }],
};

/** How fast events become durable: agents that never pause, through the engine and under the lease. */
const measure: Measure = async ({ quick }) => {
  const events = quick ? 2_000 : 40_000;
  const one = await rate(1, events);
  const eight = await rate(8, events);
  const note = (commits: number) => `${(events / commits).toFixed(0)} events a commit, as the engine batches them`;
  return [
    {
      name: 'durable events, one conversation',
      value: one.perSecond,
      unit: '/s',
      target: { kind: 'aim', least: 10_000 },
      note: note(one.commits),
    },
    {
      name: 'durable events, eight conversations at once',
      value: eight.perSecond,
      unit: '/s',
      target: { kind: 'aim', least: 10_000 },
      note: note(eight.commits),
    },
  ];
};

async function rate(conversations: number, events: number): Promise<{ perSecond: number; commits: number }> {
  await using home = new BenchHome();
  const each = events / conversations;
  const agent = inProcessAgent(() => Array.from({ length: each }, () => UPDATE));
  const { engine, queue } = await home.open({ agent });
  const commits = queue.commits;
  const start = performance.now();
  await Promise.all(
    Array.from({ length: conversations }, async (_, i) => {
      const { id } = await engine.ensure({ key: `c${i}` });
      const { turn, seq } = await engine.submit(id, 'Go.');
      const watch = new TurnWatch(engine, id, seq);
      await watch.ended(turn.id);
      await watch.stop();
    }),
  );
  const seconds = (performance.now() - start) / 1_000;
  return { perSecond: events / seconds, commits: queue.commits - commits };
}

export default measure;
