import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { sightings } from '../support/sightings.ts';
import { quantile } from '../support/statistics.ts';

const measure: Measure = async ({ quick }) => {
  await using home = new BenchHome();
  const { engine } = await home.open();
  const latencies = await sightings({ engine, home: home.path }, quick ? 20 : 400);
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
