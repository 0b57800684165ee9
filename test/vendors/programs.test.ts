import { expect, test } from 'vitest';
import { processesAt } from '../../src/host/processes.ts';
import { localProcesses, localSandbox } from '../../src/sandboxes/shared/local-sandbox.ts';
import { Programs } from '../../src/sandboxes/vendors/inside/programs.ts';

const processes = processesAt('test');
const { spawn } = localSandbox({ id: 'test', work: '/', state: '/', processes });
const { end } = localProcesses(processes);
const neverAborted = new AbortController().signal;
const SLEEP = ['/bin/sh', '-c', 'sleep 100000'];

test('a program without requests is ended and forgotten; one with an open request is not', async () => {
  const programs = new Programs(spawn, end, 50); // milliseconds without a request
  await programs.start('used', SLEEP, { env: {} });
  const used = await programs.get('used');
  const answered = Promise.withResolvers<void>();
  const request = used.asked(() => answered.promise);
  await programs.start('unused', SLEEP, { env: {} });
  const unused = await programs.get('unused');
  await unused.child.exited;
  await expect.poll(() => programs.get('unused').catch((error) => error.code)).toBe('not_found');
  expect([unused.child.alive, used.child.alive]).toEqual([false, true]);
  answered.resolve();
  await request;
  await used.child.exited;
});

test('a repeated request starts one program, and repeated input reaches it once', async () => {
  const programs = new Programs(spawn, end);
  const start = () => programs.start('one', ['/bin/cat'], { env: {} });
  const [first, second] = await Promise.all([start(), start()]);
  expect(second).toEqual(first);
  const program = await programs.get('one');
  for (const [from, text] of [
    [0, 'hello '],
    [0, 'hello '],
    [3, 'lo you'],
    [6, 'you'],
  ] as const) {
    expect(await program.input(from, Buffer.from(text), false, neverAborted)).toBe(true);
  }
  expect(await program.input(9, Buffer.alloc(0), true, neverAborted)).toBe(true);
  await program.child.exited;
  const output = async (from: number) =>
    Buffer.from((await program.output('stdout', from, neverAborted)).bytes).toString();
  // The same offset gives the same output again. Output before an offset counts as read.
  expect([await output(0), await output(0), await output(6), await output(9)]).toEqual([
    'hello you',
    'hello you',
    'you',
    '',
  ]);
  expect(await program.exit(neverAborted)).toEqual({ code: 0, signal: null });
});
