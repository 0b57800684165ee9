import type { Measure } from '../finding.ts';
import { heavyCalls } from '../support/heavy-calls.ts';
import { HeavyServer } from '../support/heavy-server.ts';

/** How long other requests wait while the server works on the heaviest possible request. */
const measure: Measure = async ({ quick }) => {
  const sizes = quick
    ? { turns: 1_500, large: 5, largeBytes: 200_000, bodyBytes: 2_097_152 }
    : { turns: 150_000, large: 60, largeBytes: 1_000_000, bodyBytes: 67_108_864 };
  await using server = await HeavyServer.start(sizes);
  const held = [];
  for (const call of heavyCalls(sizes)) held.push({ call, ...(await server.hold(call)) });
  const wrong = held.filter(({ call, status }) => !call.statuses.includes(status));
  if (wrong.length > 0) throw new Error(wrong.map(({ name, status }) => `${name}: ${status}`).join(', '));
  const slowest = held.toSorted((a, b) => b.healthMs - a.healthMs).slice(0, 5);
  const most = held.toSorted((a, b) => (b.mb ?? 0) - (a.mb ?? 0))[0];
  const beside = `${held.length} calls: bodies of ${sizes.bodyBytes / 1_048_576} MiB, a conversation of ${sizes.turns} turns, one of ${sizes.large} MB`;
  return [
    {
      name: '`/healthz` beside the heaviest requests, at the most',
      value: Math.max(...held.map(({ healthMs }) => healthMs)),
      unit: 'ms',
      target: { kind: 'must', most: 250 },
      note: `${beside}; the longest: ${slowest.map(({ name, healthMs, ms }) => `${name} ${Math.round(healthMs)} of ${Math.round(ms)} ms`).join(', ')}`,
    },
    {
      name: 'memory of the server with them',
      value: most?.mb ?? 0,
      unit: 'MB',
      target: { kind: 'aim', most: 1_024 },
      note: `resident at the most, one after another; ${most?.name ?? ''}`,
    },
  ];
};

export default measure;
