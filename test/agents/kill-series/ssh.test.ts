import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { type Sshd, startSshd, whyNoSshd } from '../../contracts/sandbox/sshd.ts';
import { agentProcess, killSeries, onThisMachine, ourProcess } from './kill-series.ts';

const missing = whyNoSshd();
let sshd: Sshd;

if (missing === null) {
  beforeAll(async () => {
    sshd = await startSshd();
  });
  afterAll(() => sshd[Symbol.asyncDispose]());
}

async function sessionOfSshd(): Promise<void> {
  expect(sshd.signal('SIGKILL')).toBeGreaterThan(0);
}

killSeries({
  name: 'ssh',
  missing,
  ...onThisMachine(),
  // The other machine is this one: its files can be looked at.
  work: (_, conversation) => join(sshd.sandbox.root, conversation, 'work'),
  settings: () => ({ sandbox: sshd.sandbox }),
  victims: { Throughline: ourProcess, 'the agent': agentProcess, 'the session of sshd': sessionOfSshd },
});
