// The directory of a task: its sandbox may be on another machine, so only the sandboxes decide which one a path means.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { inWords, parsePlan, placesIn, type TaskPlan } from '../../../src/core/tasks/task-plan.ts';
import { processesAt } from '../../../src/host/processes.ts';
import type { Agent } from '../../../src/ports/agent.ts';
import { directorySandboxes } from '../../../src/sandboxes/directory/directory-sandboxes.ts';
import { RemoteSandboxes } from '../../../src/sandboxes/shared/remote/remote-sandboxes.ts';
import { admitTasks } from '../../../src/tasks/admit.ts';

function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-directories-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const processes = processesAt('test');

/** Another machine that has the same files as this one: what is refused is refused because of the path alone. */
function remote(): RemoteSandboxes {
  const machine = {
    name: 'builder',
    silenceSeconds: 1,
    run: async (script: string) => {
      const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', script]);
      return { code: status ?? 1, stdout, stderr: stderr.toString() };
    },
    start: () => expect.unreachable(),
  };
  const root = temporaryFolder();
  return new RemoteSandboxes({ machine, kind: 'ssh', place: 'test', home: 'builder', root, processes });
}

function admit(sandboxes: RemoteSandboxes | ReturnType<typeof directorySandboxes>, plan: TaskPlan, base?: string) {
  const agent = { traits: async () => ({ resume: true, load: false }) } as unknown as Agent;
  const settings = { defaultAgent: 'a' } as Parameters<typeof admitTasks>[0]['settings'];
  const parts = { agents: new Map([['a', { agent }]]), sandboxes, settings };
  return admitTasks(parts, parsePlan(plan).tasks, { base, at: placesIn(plan, inWords) });
}

test.each([
  ['the working directory of this process', undefined],
  ['the folder of a task file', process.cwd()],
])('with sandboxes on another machine, a directory relative to %s is refused', async (_, base) => {
  await expect(admit(remote(), { goal: 'x', cwd: 'src' }, base)).rejects.toMatchObject({
    code: 'refused',
    message: 'cwd: The working directory src is not an absolute path.',
    hint: 'Give the whole path on builder.',
  });
});

test('a whole path is looked up where the sandboxes are', async () => {
  const folder = temporaryFolder();
  const [task] = await admit(remote(), { goal: 'x', cwd: folder }, '/nowhere');
  expect(task?.cwd).toBe(folder);
});

test('with sandboxes here, a relative directory starts at the folder of its file, else at this process; links are kept', async () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'work'));
  symlinkSync('work', join(folder, 'link'));
  const sandboxes = directorySandboxes({ root: join(folder, 'sandboxes'), place: 'test', processes });
  const plan = {
    tasks: [
      { goal: 'x', cwd: './work' },
      { goal: 'y', cwd: 'link' },
    ],
  };
  const admitted = await admit(sandboxes, plan, folder);
  expect(admitted.map(({ cwd }) => cwd)).toEqual([join(folder, 'work'), join(folder, 'link')]);
  const [here] = await admit(sandboxes, { goal: 'x', cwd: 'src' });
  expect(here?.cwd).toBe(resolve('src'));
});
