import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { history } from '../support/history.ts';
import { median } from '../support/statistics.ts';
import { TurnWatch } from '../support/turn-watch.ts';

const PROMPT = '/say Hello.';

/** The first turn of a session that has to be told a whole history, beside one that has none. Both start the agent. */
const measure: Measure = async ({ quick }) => {
  const turns = quick ? 50 : 1_000;
  await using home = new BenchHome();
  const { engine } = await home.open({ scripted: { window: 2_000_000 }, engine: { maxWarm: 0 } });
  const exported = history(turns, 'scripted');
  const first = async (id: string, after: number) => {
    const watch = new TurnWatch(engine, id, after);
    const start = performance.now();
    const { turn } = await engine.submit(id, PROMPT);
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
    delivered = told.receipt.delivered;
    times.told.push(told.ms);
    const fresh = await engine.ensure({ key: `fresh ${i}` });
    times.fresh.push((await first(fresh.id, fresh.lastSeq)).ms);
  }
  const [told, fresh] = [median(times.told), median(times.fresh)];
  return [
    {
      name: `restore by transcript, ${delivered.toLocaleString('en')} turns, p50`,
      value: told - fresh,
      unit: 'ms',
      target: null,
      note: `${told.toFixed(0)} ms to the first update, less ${fresh.toFixed(0)} ms for a conversation without a history; both start the agent`,
    },
  ];
};

export default measure;
