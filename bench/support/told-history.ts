import type { Engine } from '../../src/ports/engine.ts';
import { history } from './history.ts';
import { median } from './statistics.ts';
import { TurnWatch } from './turn-watch.ts';

export interface ToldHistory {
  /** The median time to the first update, in ms: of a session that gets a whole history first, and of one without a history. */
  readonly told: number;
  readonly fresh: number;
  readonly delivered: number;
}

/** Compares the first turn of sessions that get a history with that of sessions without one. All of them start the agent. */
export async function toldHistory(
  engine: Engine,
  { agent, prompt, quick }: { readonly agent: string; readonly prompt: string; readonly quick: boolean },
): Promise<ToldHistory> {
  const exported = history(quick ? 50 : 1_000, agent);
  const first = async (id: string, after: number) => {
    const watch = new TurnWatch(engine, id, after);
    const start = performance.now();
    const { turn } = await engine.submit(id, prompt);
    const ms = (await watch.first(turn.id)) - start;
    await watch.ended(turn.id);
    await watch.stop();
    return { ms, receipt: (await engine.answerOf(turn.id)).receipt };
  };
  const times: { told: number[]; fresh: number[] } = { told: [], fresh: [] };
  let delivered = 0;
  for (let i = 0; i < (quick ? 2 : 10); i += 1) {
    const imported = await engine.import(exported, { key: `told ${i}` });
    const told = await first(imported.id, imported.lastSeq);
    delivered = told.receipt?.delivered ?? 0;
    times.told.push(told.ms);
    const fresh = await engine.ensure({ key: `fresh ${i}` });
    times.fresh.push((await first(fresh.id, fresh.lastSeq)).ms);
  }
  return { told: median(times.told), fresh: median(times.fresh), delivered };
}
