import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from '../../src/ports/engine.ts';
import type { Measure } from '../finding.ts';
import { ClaudeBench } from '../support/claude-bench.ts';
import { TurnWatch } from '../support/turn-watch.ts';

const MB = 1024 * 1024;

/** The memory of this process after many conversations with Claude have each had a turn, and none has a process any more. */
const measure: Measure = async ({ quick }) => {
  await using bench = await ClaudeBench.start('claude-memory');
  if (bench === null) return [];
  const conversations = quick ? 3 : 100;
  const { engine } = await bench.home.open({ agent: bench.agent(), engine: { maxWarm: 0 } });
  const before = process.memoryUsage.rss();
  let most = before;
  for (let i = 0; i < conversations; i += 1) {
    const { id, lastSeq } = await engine.ensure({ key: `dormant ${i}` });
    const watch = new TurnWatch(engine, id, lastSeq);
    const { turn } = await engine.submit(id, `The codeword is ${i}.`);
    await watch.ended(turn.id);
    await watch.stop();
    most = Math.max(most, process.memoryUsage.rss());
  }
  while (await anyLive(engine, conversations)) await delay(50); // the last process takes a moment to end
  const rss = process.memoryUsage.rss();
  return [
    {
      name: `memory with ${conversations} dormant conversations of Claude`,
      value: rss / MB,
      unit: 'MB',
      target: { kind: 'aim', most: 150 },
      note:
        `resident, of Throughline’s process with the SDK in it; ${(before / MB).toFixed(0)} MB before, ${(most / MB).toFixed(0)} MB ` +
        'at the most; run from its sources, so what strips their types is in it, too',
    },
  ];
};

async function anyLive(engine: Engine, conversations: number): Promise<boolean> {
  for (let i = 0; i < conversations; i += 1) {
    if ((await engine.sessions(`dormant ${i}`)).some(({ state }) => state !== 'dormant')) return true;
  }
  return false;
}

export default measure;
