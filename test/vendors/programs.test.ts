import { expect, test } from 'vitest';
import { processesAt } from '../../src/host/processes.ts';
import { localProcesses, localSandbox } from '../../src/sandboxes/shared/local-sandbox.ts';
import { Programs } from '../../src/sandboxes/vendors/inside/programs.ts';

const processes = processesAt('test');
const { spawn } = localSandbox({ id: 'test', work: '/', state: '/', processes });
const { end } = localProcesses(processes);
const never = new AbortController().signal;
const SLEEPS = ['/bin/sh', '-c', 'sleep 100000'];

test('a program without requests is ended and forgotten; one with an open request is not', async () => {
  const programs = new Programs(spawn, end, 50);
  await programs.start('asked', SLEEPS, { env: {} });
  const asked = await programs.get('asked');
  const answered = Promise.withResolvers<void>();
  const asking = asked.asked(() => answered.promise);
  await programs.start('left', SLEEPS, { env: {} });
  const left = await programs.get('left');
  await left.child.exited;
  await expect.poll(() => programs.get('left').catch((error) => error.code)).toBe('not_found');
  expect([left.child.alive, asked.child.alive]).toEqual([false, true]);
  answered.resolve();
  await asking;
  await asked.child.exited;
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
    expect(await program.input(from, Buffer.from(text), false, never)).toBe(true);
  }
  expect(await program.input(9, Buffer.alloc(0), true, never)).toBe(true);
  await program.child.exited;
  const said = async (from: number) => Buffer.from((await program.output('stdout', from, never)).bytes).toString();
  // The same offset gives the same output again. Output before an offset counts as read.
  expect([await said(0), await said(0), await said(6), await said(9)]).toEqual(['hello you', 'hello you', 'you', '']);
  expect(await program.exit(never)).toEqual({ code: 0, signal: null });
});
