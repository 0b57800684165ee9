import { basename, join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { until } from '../../contracts/agent-sandbox.ts';
import { marked } from '../../faults/harness/marked.ts';
import { DoubleHome, NODE_OPTIONS, readOrNull, touch } from '../../vendors/double/home.ts';
import { whyNoDoubles } from '../../vendors/double/service.ts';
import { agentProcess, type InTheMiddle, killSeries, onThisMachine, ourProcess } from './kill-series.ts';

const missing = whyNoDoubles();
const ours = onThisMachine();
// For the processes of ours that are started here.
process.env.NODE_OPTIONS = NODE_OPTIONS;

// Both are reached over the same bridge.
const KINDS = process.env.THROUGHLINE_LONG === '1' ? (['vercel', 'e2b'] as const) : (['e2b'] as const);
for (const kind of missing === null ? KINDS : []) {
  const doubles = new DoubleHome(kind);
  afterAll(() => doubles.service.dispose());
  killSeries({
    name: `${kind}, with a double of its package`,
    missing,
    agent(model, root) {
      // It keeps its sessions in the home of its machine.
      const { env, ...agent } = ours.agent(model, root);
      const { HOME: _, ...others } = env;
      return { ...agent, env: others };
    },
    settings: () => ({ sandbox: doubles.sandbox }),
    run: ours.run,
    work: (_, conversation) => doubles.work(conversation),
    read: async ({ work }, name) => readOrNull(join(work, name)),
    write: async ({ work }, name) => touch(join(work, name)),
    running: async ({ home }) => marked(basename(home.path)),
    victims: { Throughline: ourProcess, 'the agent': agentProcess, 'the machine': machineOf(doubles) },
  });
}

if (missing !== null)
  killSeries({ ...ours, name: 'rented machines', missing, settings: () => ({}), victims: { all: async () => {} } });

/** As when the vendor's computer breaks. */
function machineOf({ service }: DoubleHome) {
  return async ({ work, home }: InTheMiddle) => {
    const id = service.all().find((one) => work.includes(one.id))?.id ?? expect.unreachable('it has no machine');
    await service.stop(id);
    await until('all in it has ended', () => marked(basename(home.path)).length === 0);
  };
}
