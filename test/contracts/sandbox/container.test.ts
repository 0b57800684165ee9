import { spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { processesAt } from '../../../src/host/processes.ts';
import type { SandboxProcess } from '../../../src/ports/sandbox.ts';
import { type EngineName, labelled } from '../../../src/sandboxes/container/engine.ts';
import { containerProcesses, identityOfContainer, labelOf } from '../../../src/sandboxes/container/processes.ts';
import { processesWith } from '../../agents/support/processes.ts';
import type { GivenSandboxes } from './around.ts';
import { containerSandboxes, whyNo, writeRootfs } from './container-given.ts';
import { sandboxContract } from './sandbox.contract.ts';

const STARTER = fileURLToPath(new URL('container-given.ts', import.meta.url));

// One folder for all tests, so that only one check for containers is made.
const base = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-sandboxes-')));
writeRootfs(join(base, 'rootfs'));
afterAll(() => rmSync(base, { recursive: true, force: true }));

async function contained(engine: EngineName): Promise<GivenSandboxes> {
  const root = join(base, 'data-home');
  return {
    ownHomes: true,
    isolated: true,
    slowStarts: true,
    rounds: 50, // fewer, because the code for files is that of directories, which are tested with more
    sandboxes: () => containerSandboxes(base, { network: 'none', engine }),
    starter: (words) => [process.execPath, STARTER, base, engine, ...words],
    dispose: async () => rmSync(root, { recursive: true, force: true }),
  };
}

for (const engine of ['podman', 'docker'] as const) {
  const why = await whyNo(engine);
  if (why === null) {
    sandboxContract(`container of ${engine}`, () => contained(engine));
    describe(`a container of ${engine} whose starter was killed`, () => killedStarter(engine));
  } else test(`the contract of sandboxes in containers of ${engine}`, (context) => context.skip(why));
}

function killedStarter(engine: EngineName): void {
  const deaf = ['/bin/sh', '-c', 'trap "" HUP TERM; while :; do sleep 1; done'];

  async function started() {
    const { starter, sandboxes, dispose } = await contained(engine);
    const [program, ...args] = starter(deaf);
    const ours = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(async () => {
      ours.kill('SIGKILL');
      await dispose();
    });
    const gone = new Promise((resolve) => ours.once('exit', resolve));
    const [line] = (await createInterface(ours.stdout)[Symbol.asyncIterator]().next()).value?.split('\n') ?? [];
    const stored = JSON.parse(line ?? '') as SandboxProcess;
    const identity = identityOfContainer(stored) ?? expect.unreachable('it is no container');
    const label = labelOf(identity);
    const kill = async () => {
      ours.kill('SIGKILL');
      await gone;
    };
    return { stored, identity, label, kill, sandboxes: sandboxes() };
  }

  test('is removed by its guard', async () => {
    const { label, stored, kill, sandboxes } = await started();
    expect(await labelled(engine, label, { isRunning: true })).toHaveLength(1);
    await kill();
    await expect.poll(() => labelled(engine, label)).toEqual([]);
    await expect.poll(() => sandboxes.status(stored)).toBe('dead');
  });

  test('is found by its label when nothing else is left of it, and ended', async () => {
    const { label, stored, identity, kill, sandboxes } = await started();
    const isOf = ({ id }: SandboxProcess) => id.includes(identity.mark);
    expect((await sandboxes.orphans()).filter(isOf)).toEqual([]);
    // The guard first, because it would act when its starter has ended. Then the starter, then the engine's client.
    const guards = processesWith('cmdline', label).filter((pid) => pid !== identity.client.pid);
    expect(guards).toHaveLength(1);
    for (const pid of guards) process.kill(pid, 'SIGKILL');
    await kill();
    process.kill(identity.client.pid, 'SIGKILL');
    const orphans = (await sandboxes.orphans()).filter(isOf);
    expect(orphans.map(({ kind }) => kind)).toEqual(['container']);
    // Only by the label, as with an engine whose processes we cannot see.
    const unseen = { ...processesAt('test'), endMarked: async () => {}, end: async () => 'ended' as const };
    const byLabel = containerProcesses(unseen, 'test', engine);
    expect(await byLabel.status(stored)).toBe('alive');
    expect(await byLabel.end(orphans[0] ?? stored)).toBe('ended');
    expect(await byLabel.status(stored)).toBe('dead');
    expect(await labelled(engine, label)).toEqual([]);
  });
}
