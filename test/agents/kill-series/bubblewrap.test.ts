import { join } from 'node:path';
import { whyNoBubblewrap } from '../../contracts/sandbox/bubblewrap-given.ts';
import { killAgentProcess, killRecordedProcess, killSeries, killThroughline, onThisMachine } from './kill-series.ts';

const local = onThisMachine();
const PACKAGES = join(import.meta.dirname, '../../../node_modules');

killSeries({
  name: 'bubblewrap',
  whySkipped: whyNoBubblewrap(),
  ...local,
  agent(model, root) {
    // Without HOME, the agent stores its sessions in the home of its sandbox.
    const { env, ...agent } = local.agent(model, root);
    const { HOME: _, ...others } = env;
    return { ...agent, env: others };
  },
  settings: ({ url }) => ({
    sandbox: { kind: 'bubblewrap', network: 'model', allow: [new URL(url).host], binds: [{ path: PACKAGES }] },
  }),
  kills: { Throughline: killThroughline, 'the agent': killAgentProcess, bubblewrap: killRecordedProcess },
});
