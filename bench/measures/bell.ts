import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/host/clock.ts';
import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { quantile } from '../support/statistics.ts';

const FOLLOWER = fileURLToPath(new URL('../support/follower.ts', import.meta.url));

/** From the acknowledged commit in one process until a follower in another one has the event. Both read the same clock. */
const measure: Measure = async ({ quick }) => {
  await using home = new BenchHome();
  const { engine } = await home.open();
  const { id } = await engine.ensure({ key: 'bench' });
  const child = spawn(process.execPath, [FOLLOWER, home.path, id], { stdio: ['pipe', 'pipe', 'inherit'] });
  const seen = new Map<number, PromiseWithResolvers<number>>();
  const sight = (seq: number) => {
    const known = seen.get(seq) ?? Promise.withResolvers<number>();
    seen.set(seq, known);
    return known;
  };
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [seq = 0, at = 0] = JSON.parse(line) as number[];
    sight(seq).resolve(at);
  });
  await sight(1).promise;
  const latencies: number[] = [];
  for (let i = 0; i < (quick ? 20 : 400); i += 1) {
    await engine.rename(id, `Title ${i}`);
    const acknowledged = systemClock.monotonic();
    latencies.push((await sight(i + 2).promise) - acknowledged);
    await delay(5 + Math.random() * 15);
  }
  child.stdin.end();
  await once(child, 'exit'); // it has the home open until then
  return [
    {
      name: 'an event seen in another process, p50',
      value: quantile(latencies, 0.5),
      unit: 'ms',
      target: null,
      note: `after its commit was acknowledged, read by \`follow\`; p99 ${quantile(latencies, 0.99).toFixed(2)} ms`,
    },
  ];
};

export default measure;
