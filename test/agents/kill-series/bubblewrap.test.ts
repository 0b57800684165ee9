import { join } from 'node:path';
import { whyNoBubblewrap } from '../../contracts/sandbox/bubblewrap-given.ts';
import { agentProcess, killSeries, onThisMachine, ourProcess, recordedProcess } from './kill-series.ts';

const ours = onThisMachine();
const PACKAGES = join(import.meta.dirname, '../../../node_modules');

killSeries({
  name: 'bubblewrap',
  missing: whyNoBubblewrap(),
  ...ours,
  agent(model, root) {
    // It keeps its sessions in the home of its sandbox.
    const { env, ...agent } = ours.agent(model, root);
    const { HOME: _, ...others } = env;
    return { ...agent, env: others };
  },
  settings: ({ url }) => ({
    sandbox: { kind: 'bubblewrap', network: 'model', allow: [new URL(url).host], binds: [{ path: PACKAGES }] },
  }),
  victims: { Throughline: ourProcess, 'the agent': agentProcess, bubblewrap: recordedProcess },
});
