import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { toldHistory } from '../support/told-history.ts';

/** The first turn of a session that gets a whole history, compared with one without a history. Both start the agent. */
const measure: Measure = async ({ quick }) => {
  await using home = new BenchHome();
  const { engine } = await home.open({ scripted: { window: 2_000_000 }, engine: { maxWarm: 0 } });
  const { told, fresh, delivered } = await toldHistory(engine, { agent: 'scripted', prompt: '/say Hello.', quick });
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
