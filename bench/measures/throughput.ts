import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { inProcessAgent, said } from '../support/in-process-agent.ts';
import { TurnWatch } from '../support/turn-watch.ts';

/** Whole turns through the engine: many conversations at once, and in each one turn after the other. */
const measure: Measure = async ({ quick }) => {
  const conversations = 64;
  const turns = quick ? 2 : 50;
  await using home = new BenchHome();
  const agent = inProcessAgent(() => [said('Hello.')]);
  const { engine, queue } = await home.open({ agent, engine: { maxWarm: conversations } });
  const ids = await Promise.all(
    Array.from({ length: conversations }, async (_, i) => (await engine.ensure({ key: `c${i}` })).id),
  );
  const watches = ids.map((id) => ({ id, watch: new TurnWatch(engine, id, 0) }));
  const round = (count: number) =>
    Promise.all(
      watches.map(async ({ id, watch }) => {
        for (let i = 0; i < count; i += 1) await watch.ended((await engine.submit(id, 'Hello?')).turn.id);
      }),
    );
  await round(2);
  const commits = queue.commits;
  const start = performance.now();
  await round(turns);
  const seconds = (performance.now() - start) / 1_000;
  const all = conversations * turns;
  await Promise.all(watches.map(({ watch }) => watch.stop()));
  return [
    {
      name: `turns of ${conversations} conversations at once`,
      value: all / seconds,
      unit: '/s',
      target: null,
      note: `a double answers at once in this process; ${(all / (queue.commits - commits)).toFixed(1)} turns a commit`,
    },
  ];
};

export default measure;
