import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CliHome, type Ended, parseLines, preload, whenWritten } from './process.ts';

const home = new CliHome();
const temporary = join(home.path, 'tmp');
afterAll(() => home.remove());

/** The demo with a temporary directory of its own, so that what it leaves there is seen. */
function demo(args: string[] = [], env: Record<string, string> = {}) {
  const own = { TMPDIR: temporary, NODE_COMPILE_CACHE: join(home.path, 'cache') };
  return home.start(['demo', ...args], { env: { ...own, ...env } });
}

let text: Ended;
beforeAll(async () => {
  mkdirSync(temporary);
  text = await demo().ended;
});

test('the demo shows the loss, the control that forgets, the right answer and the receipt', () => {
  expect(text).toMatchObject({ code: 0, stderr: '' });
  const [, codeword = 'none'] = /The codeword is (\w+-\w+-\d{4})/.exec(text.stdout) ?? [];
  expect(text.stdout).toContain('scripted');
  expect(text.stdout).toMatch(/process \d+ killed with SIGKILL, 1 session file deleted/);
  expect(text.stdout).toContain('agent  I have seen no codewords.  ← forgotten');
  expect(text.stdout).toContain(`agent  I have seen these codewords: ${codeword}.  ← remembered`);
  expect(text.stdout).toMatch(/receipt {2}restored by transcript: 1 turn carried, 0 dropped/);
  expect(text.stdout).toContain('The conversation outlived its session.');
});

test('the demo leaves nothing behind, neither in its temporary home nor in the real one', () => {
  expect(readdirSync(temporary)).toEqual([]);
  expect(readdirSync(home.path)).not.toContain('home');
});

test('the codeword is another one every time, and every step is there as JSON', async () => {
  const { code, stdout } = await demo(['--json']).ended;
  const steps = parseLines(stdout);
  expect(code).toBe(0);
  expect(steps.map((step) => step.step ?? step.kind)).toEqual(['told', 'lost', 'without', 'with', 'result']);
  const [told, lost, without, restored, result] = steps;
  expect(text.stdout).not.toContain(told.codeword);
  expect(lost).toMatchObject({ files: 1, pid: expect.any(Number) });
  expect(without).toMatchObject({ remembered: false, refusal: expect.stringContaining(lost.sessionId) });
  expect(restored).toMatchObject({ remembered: true, receipt: { rung: 'transcript', carried: 1 } });
  expect(restored.reply).toContain(told.codeword);
  expect(result).toMatchObject({ ok: true, ms: expect.any(Number) });
});

test('a demo that is interrupted cleans up as well', async () => {
  // By itself, in the middle: whoever watches it may be too late.
  const interrupted = whenWritten('The codeword is', `() => process.kill(process.pid, 'SIGINT')`);
  expect((await demo([], preload('demo', interrupted)).ended).code).toBe(130);
  expect(readdirSync(temporary)).toEqual([]);
});
