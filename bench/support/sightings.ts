import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/host/clock.ts';
import type { Engine } from '../../src/ports/engine.ts';

const FOLLOWER = fileURLToPath(new URL('follower.ts', import.meta.url));

export interface Followed {
  readonly engine: Engine;
  readonly home: string;
  /** Left out: the file of the data home. */
  readonly store?: string;
}

/** In ms, from the acknowledged commit in this process until a follower in another one has the event. Both read the same clock. */
export async function sightings({ engine, home, store }: Followed, count: number): Promise<number[]> {
  const { id } = await engine.ensure({ key: 'seen elsewhere' });
  const args = [FOLLOWER, home, id, ...(store === undefined ? [] : [store])];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
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
  for (let i = 0; i < count; i += 1) {
    await engine.rename(id, `Title ${i}`);
    const acknowledged = systemClock.monotonic();
    latencies.push((await sight(i + 2).promise) - acknowledged);
    await delay(5 + Math.random() * 15);
  }
  child.stdin.end();
  await once(child, 'exit'); // it has the store open until then
  return latencies;
}
