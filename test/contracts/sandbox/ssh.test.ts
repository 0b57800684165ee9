import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, test } from 'vitest';
import { processesAt } from '../../../src/host/processes.ts';
import { sshSandboxes } from '../../../src/sandboxes/ssh/ssh-sandboxes.ts';
import type { GivenSandboxes } from './around.ts';
import { sandboxContract } from './sandbox.contract.ts';
import { type Sshd, startSshd, whyNoSshd } from './sshd.ts';

const STARTER = fileURLToPath(new URL('ssh-starter.ts', import.meta.url));

let sshd: Sshd;

async function bySsh(): Promise<GivenSandboxes> {
  const root = mkdtempSync(join(sshd.folder, 'root-'));
  const settings = { ...sshd.settings, root };
  return {
    rounds: 40,
    sandboxes: () => sshSandboxes({ ...settings, processes: processesAt('test') }),
    starter: (words) => [process.execPath, STARTER, JSON.stringify(settings), ...words],
    dispose: async () => {},
  };
}

const why = whyNoSshd();
if (why === null) {
  beforeAll(async () => {
    sshd = await startSshd();
  });
  afterAll(() => sshd[Symbol.asyncDispose]());
  sandboxContract('ssh', bySsh);
} else test('the contract of sandboxes by ssh', (context) => context.skip(why));
