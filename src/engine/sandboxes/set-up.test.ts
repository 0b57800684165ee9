import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { sandboxAt } from '../../../test/contracts/agent-sandbox.ts';
import type { SetupResult } from '../../core/sandbox/sandbox.ts';
import { type Entrance, setUp } from './set-up.ts';

test('whoever loses the sandbox while it is set up does not go on before it is', async () => {
  const root = mkdtempSync(join(tmpdir(), 'throughline-set-up-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const done = join(root, 'done');
  // The first time it hangs, until somebody else has the sandbox alone.
  const script = `[ -e '${root}/tried' ] || { touch '${root}/tried'; sleep 100000; }; touch '${done}'`;
  let [setup, renewals] = [[] as readonly SetupResult[], 0];
  const store = {
    findSandbox: async () => ({ setup, name: null }),
    changeSandbox: async (_: string, __: string, change: { setup: readonly SetupResult[] }) => {
      setup = change.setup;
    },
    holdSandbox: async () => {
      renewals += 1;
      return existsSync(join(root, 'tried')) && renewals > 1 && setup.length === 0 ? { alone: { id: 'other' } } : null;
    },
    releaseSandbox: async () => {},
  };
  const settings = {
    leaseMs: 300,
    sandbox: { setup: [{ name: 'step', command: ['/bin/sh', '-c', script], timeoutMs: 60_000 }] },
  };
  const clock = { now: () => 0, monotonic: () => performance.now() };
  const entrance = {
    ...{ parts: { store, settings, clock }, worker: { id: 'we' }, owner: 'ann', id: 'one', place: 'here' },
    ...{ open: async () => sandboxAt(root), tell: () => {}, signal: new AbortController().signal },
  } as unknown as Entrance;
  let held = 0;
  await setUp(entrance, async () => {
    held += 1;
    if (held > 1) renewals = -1_000_000; // it is ours again
    return true;
  });
  expect([existsSync(done), held, setup.map(({ code }) => code)]).toEqual([true, 2, [0]]);
});
