import { killAgentProcess, killSeries, killThroughline, onThisMachine } from './kill-series.ts';

killSeries({
  name: 'directory',
  whySkipped: null,
  ...onThisMachine(),
  settings: () => ({ sandbox: { kind: 'directory' } }),
  kills: { Throughline: killThroughline, 'the agent': killAgentProcess },
});
