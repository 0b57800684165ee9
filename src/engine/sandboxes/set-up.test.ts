import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { sandboxAt } from '../../../test/contracts/agent-sandbox.ts';
import type { SetupResult } from '../../core/sandbox/sandbox.ts';
import { type SandboxRequest, setUp } from './set-up.ts';

test('a process that loses the sandbox during the set-up continues only when the set-up is done', async () => {
  const root = mkdtempSync(join(tmpdir(), 'throughline-set-up-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const done = join(root, 'done');
  // The first call hangs until another process holds the sandbox alone.
  const script = `[ -e '${root}/tried' ] || { touch '${root}/tried'; sleep 100000; }; touch '${done}'`;
  let [setup, holds, isLost] = [[] as readonly SetupResult[], 0, false];
  const store = {
    findSandbox: async () => ({ setup, name: null }),
    changeSandbox: async (_: string, __: string, change: { setup: readonly SetupResult[] }) => {
      setup = change.setup;
    },
    holdSandbox: async () => {
      holds += 1;
      // Fails once, at the renewal; after that the lease is ours again.
      if (isLost || holds === 1 || !existsSync(join(root, 'tried'))) return null;
      isLost = true;
      return { alone: { id: 'other' } };
    },
    releaseSandbox: async () => {},
  };
  const settings = {
    leaseMs: 300,
    sandbox: { setup: [{ name: 'step', command: ['/bin/sh', '-c', script], timeoutMs: 60_000 }] },
  };
  const clock = { now: () => 0, monotonic: () => performance.now() };
  const request = {
    ...{ parts: { store, settings, clock }, worker: { id: 'we' }, owner: 'ann', id: 'one', place: 'here' },
    ...{ open: async () => sandboxAt(root), tell: () => {}, signal: new AbortController().signal },
  } as unknown as SandboxRequest;
  await setUp(request);
  expect([existsSync(done), isLost, setup.map(({ code }) => code)]).toEqual([true, true, [0]]);
});
