import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { type Sshd, startSshd, whyNoSshd } from '../../contracts/sandbox/sshd.ts';
import { killAgentProcess, killSeries, killThroughline, onThisMachine } from './kill-series.ts';

const whySkipped = whyNoSshd();
let sshd: Sshd;

if (whySkipped === null) {
  beforeAll(async () => {
    sshd = await startSshd();
  });
  afterAll(() => sshd[Symbol.asyncDispose]());
}

async function killSshdSession(): Promise<void> {
  expect(sshd.signal('SIGKILL')).toBeGreaterThan(0);
}

killSeries({
  name: 'ssh',
  whySkipped,
  ...onThisMachine(),
  // The server runs on this machine, so its files can be read here.
  work: (_, conversation) => join(sshd.sandbox.root, conversation, 'work'),
  settings: () => ({ sandbox: sshd.sandbox }),
  kills: { Throughline: killThroughline, 'the agent': killAgentProcess, 'the session of sshd': killSshdSession },
});
