import { agentProcess, killSeries, onThisMachine, ourProcess } from './kill-series.ts';

killSeries({
  name: 'directory',
  missing: null,
  ...onThisMachine(),
  settings: () => ({ sandbox: { kind: 'directory' } }),
  victims: { Throughline: ourProcess, 'the agent': agentProcess },
});
