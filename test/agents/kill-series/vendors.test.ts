import { basename, join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { until } from '../../contracts/agent-sandbox.ts';
import { marked } from '../../faults/harness/marked.ts';
import { DoubleHome, NODE_OPTIONS, readOrNull, touch } from '../../vendors/double/home.ts';
import { whyNoDoubles } from '../../vendors/double/service.ts';
import { killAgentProcess, killSeries, killThroughline, onThisMachine, type RunningTurn } from './kill-series.ts';

const whySkipped = whyNoDoubles();
const local = onThisMachine();
// The processes that this test starts load the double of the vendor's package.
process.env.NODE_OPTIONS = NODE_OPTIONS;

// Both kinds use the same bridge, so `npm run test:all` runs only one of them.
const KINDS = process.env.THROUGHLINE_LONG === '1' ? (['vercel', 'e2b'] as const) : (['e2b'] as const);
for (const kind of whySkipped === null ? KINDS : []) {
  const doubles = new DoubleHome(kind);
  afterAll(() => doubles.service.dispose());
  killSeries({
    name: `${kind}, with a double of its package`,
    whySkipped,
    agent(model, root) {
      // Without HOME, the agent stores its sessions in the home of its machine.
      const { env, ...agent } = local.agent(model, root);
      const { HOME: _, ...others } = env;
      return { ...agent, env: others };
    },
    settings: () => ({ sandbox: doubles.sandbox }),
    run: local.run,
    work: (_, conversation) => doubles.work(conversation),
    read: async ({ work }, name) => readOrNull(join(work, name)),
    write: async ({ work }, name) => touch(join(work, name)),
    running: async ({ home }) => marked(basename(home.path)),
    kills: { Throughline: killThroughline, 'the agent': killAgentProcess, 'the machine': stopMachine(doubles) },
  });
}

if (whySkipped !== null)
  killSeries({ ...local, name: 'rented machines', whySkipped, settings: () => ({}), kills: { all: async () => {} } });

/** Stops the machine of the conversation, as if the vendor's computer had failed. */
function stopMachine({ service }: DoubleHome) {
  return async ({ work, home }: RunningTurn) => {
    const id =
      service.all().find((one) => work.includes(one.id))?.id ?? expect.unreachable('the conversation has no machine');
    await service.stop(id);
    await until('all processes of the machine have ended', () => marked(basename(home.path)).length === 0);
  };
}
