import { agentProcess, killSeries, onThisMachine, ourProcess } from './kill-series.ts';

killSeries({
  name: 'directory',
  rounds: 3,
  missing: null,
  ...onThisMachine(),
  settings: () => ({ sandbox: { kind: 'directory' } }),
  victims: { Throughline: ourProcess, 'the agent': agentProcess },
});
