import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CliHome, type Ended, parseLines, preload, whenWritten } from './process.ts';

const home = new CliHome();
const temporary = join(home.path, 'tmp');
afterAll(() => home.remove());

/** Starts the demo with a temporary directory of its own, so that a test sees what it leaves there. */
function demo(args: string[] = [], env: Record<string, string> = {}) {
  const own = { TMPDIR: temporary, NODE_COMPILE_CACHE: join(home.path, 'cache') };
  return home.start(['demo', ...args], { env: { ...own, ...env } });
}

/** The data home of the user, and those of demos beside it. */
const homesIn = (path: string) => readdirSync(path).filter((name) => /^(home|throughline-demo.*)$/.test(name));

let run: Ended;
beforeAll(async () => {
  mkdirSync(temporary);
  run = await demo().ended;
});

test('the demo shows the loss, the answer without Throughline, the right answer and the receipt', () => {
  expect(run).toMatchObject({ code: 0, stderr: '' });
  const [, codeword = 'none'] = /The codeword is (\w+-\w+-\d{4})/.exec(run.stdout) ?? [];
  expect(run.stdout).toContain('scripted');
  expect(run.stdout).toMatch(/process \d+ killed with SIGKILL, 1 session file deleted/);
  expect(run.stdout).toContain('agent  I have seen no codewords.  ← forgotten');
  expect(run.stdout).toContain(`agent  I have seen these codewords: ${codeword}.  ← remembered`);
  expect(run.stdout).toMatch(/receipt {2}restored by transcript: 1 turn carried, 0 dropped/);
  expect(run.stdout).toContain('The conversation outlived its session.');
});

test('the demo leaves nothing behind, neither in its temporary home nor in the real one', () => {
  expect(readdirSync(temporary)).toEqual([]);
  expect(homesIn(home.path)).toEqual([]);
});

test('each run has another codeword, and --json prints every step', async () => {
  const { code, stdout } = await demo(['--json']).ended;
  const steps = parseLines(stdout);
  expect(code).toBe(0);
  expect(steps.map((step) => step.step ?? step.kind)).toEqual(['told', 'lost', 'without', 'with', 'result']);
  const [told, lost, without, restored, result] = steps;
  expect(run.stdout).not.toContain(told.codeword);
  expect(lost).toMatchObject({ files: 1, pid: expect.any(Number) });
  expect(without).toMatchObject({ remembered: false, refusal: expect.stringContaining(lost.sessionId) });
  expect(restored).toMatchObject({ remembered: true, receipt: { rung: 'transcript', carried: 1 } });
  expect(restored.reply).toContain(told.codeword);
  expect(result).toMatchObject({ ok: true, ms: expect.any(Number) });
});

test('a demo that is interrupted cleans up as well', async () => {
  // The demo interrupts itself in the middle. A signal from outside could come too late.
  const interrupted = whenWritten('The codeword is', `() => process.kill(process.pid, 'SIGINT')`);
  expect((await demo([], preload('demo', interrupted)).ended).code).toBe(130);
  expect(readdirSync(temporary)).toEqual([]);
  expect(homesIn(home.path)).toEqual([]);
});

test('a demo that has no place for its data says so', async () => {
  const { code, stderr } = await demo([], { THROUGHLINE_HOME: '/dev/null/nowhere/home' }).ended;
  expect([code, stderr]).toEqual([
    1,
    'throughline: Cannot create a directory in /dev/null/nowhere. Make it writable for this user, or keep the data elsewhere: --home, or THROUGHLINE_HOME.\n',
  ]);
});
