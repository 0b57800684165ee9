import { setTimeout as delay } from 'node:timers/promises';
import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { inProcessAgent, said } from '../support/in-process-agent.ts';

const MB = 1024 * 1024;

/**
 * The memory of one process in which very many turns run at once. Agents are other processes and would not count. So many of them do not
 * fit on a small machine, so a test double is used, which says something and then waits.
 */
const measure: Measure = async ({ quick }) => {
  const conversations = quick ? 50 : 1_000;
  const release = Promise.withResolvers<void>();
  let waiting = 0;
  const agent = inProcessAgent(async function* () {
    yield said('I am thinking about it.');
    waiting += 1;
    await release.promise;
  });
  await using home = new BenchHome();
  const { engine } = await home.open({ agent, engine: { maxRunning: conversations, maxWarm: 0, claims: 'all' } });
  const before = process.memoryUsage.rss();
  const watching = new AbortController();
  const followed: Promise<void>[] = [];
  for (let i = 0; i < conversations; i += 1) {
    const { id } = await engine.ensure({ key: `c${i}` });
    followed.push(follow(id));
    await engine.submit(id, 'Think about it.');
  }
  while (waiting < conversations) await delay(20);
  await delay(1_000);
  const rss = process.memoryUsage.rss();
  watching.abort();
  release.resolve();
  await Promise.all(followed);
  return [
    {
      name: `memory with ${conversations.toLocaleString('en')} turns in flight`,
      value: rss / MB,
      unit: 'MB',
      target: { kind: 'aim', most: 300 },
      note:
        `resident, each turn followed by a reader, agents not counted (a double in this process); before them ` +
        `${(before / MB).toFixed(0)} MB, so ${((rss - before) / conversations / 1024).toFixed(0)} KB a conversation`,
    },
  ];

  async function follow(id: string): Promise<void> {
    for await (const _ of engine.follow(id, { signal: watching.signal })) {
      // Nothing to do: only the memory of a reader counts.
    }
  }
};

export default measure;
